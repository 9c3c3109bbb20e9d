//! Where a program takes part before each request is sent.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::error::Misuse;
use crate::hook::Hook;
use crate::proto::{Defaults, HopFields, Request, Response};

/// What a program does before each request is sent: sign the request, or add headers that only this send may have.
///
/// The hook is called when a call begins, after each redirect, and before each further attempt. A call that waits for a
/// connection, a rate or an answer before its own was seen by the hook before that wait. The headers of the hook hold for
/// one send: a redirect does not carry them on, to no origin, and the request of the caller does not change.
///
/// A hook runs on the thread that drives the client, so it must not block.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use courser::{Config, HostConfig, SendHook};
///
/// // A token for one server, which is fetched elsewhere, and again when the server no longer takes it.
/// let token = Arc::new(Mutex::new(String::from("t1")));
/// let used = Arc::clone(&token);
/// let hook = SendHook::new(move |outgoing| {
///     if outgoing.url().starts_with("https://api.example/") {
///         outgoing.set_header("Authorization", format!("Bearer {}", used.lock().unwrap()));
///     }
///     Ok(())
/// })
/// .on_unauthorized(move |_url, _response| {
///     let mut token = token.lock().unwrap();
///     let fresh = std::mem::replace(&mut *token, "t2".into()) != "t2";
///     fresh // worth another send
/// });
/// let config = Config {
///     host: HostConfig { send_hook: Some(hook), ..HostConfig::default() },
///     ..Config::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct SendHook {
    before: Hook<Before>,
    unauthorized: Option<Hook<Unauthorized>>,
}

type Before = dyn Fn(&mut Outgoing<'_>) -> io::Result<()> + Send + Sync;
type Unauthorized = dyn Fn(&str, &Response) -> bool + Send + Sync;

impl SendHook {
    /// Calls `before` before each send. If it returns an error, nothing is sent, and the call fails with
    /// [`Misuse::SendHook`].
    pub fn new(
        before: impl Fn(&mut Outgoing<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            before: Hook(Arc::new(before)),
            unauthorized: None,
        }
    }

    /// Calls `again` for an answer with status 401, with the URL that was requested ([`Outgoing::url`]). If it returns
    /// true, the request is sent once more, and the caller does not get this answer. This happens once for each URL of
    /// a call, and only to requests whose body can be sent again.
    pub fn on_unauthorized(
        mut self,
        again: impl Fn(&str, &Response) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.unauthorized = Some(Hook(Arc::new(again)));
        self
    }
}

/// A request that is about to be sent, for a [`SendHook`].
///
/// ```
/// use courser::SendHook;
///
/// let hook = SendHook::new(|outgoing| {
///     let signed = format!("{} {} {}", outgoing.method(), outgoing.url(), outgoing.body().unwrap_or_default().len());
///     outgoing.set_header("X-Signed", signed);
///     Ok(())
/// });
/// ```
pub struct Outgoing<'a> {
    request: &'a Request,
    host: &'a [u8],
    attempt: u32,
    fields: &'a mut HopFields,
}

impl Outgoing<'_> {
    /// The method of this send. A redirect may have changed it.
    pub fn method(&self) -> &str {
        self.request.method_now()
    }

    /// The URL of this send: of the call, or where redirects have led. For a client of one upstream, the target.
    pub fn url(&self) -> &str {
        self.request.url()
    }

    /// The usual value of `Host`, by which the client knows the server.
    pub fn host(&self) -> &[u8] {
        self.host
    }

    /// How many attempts the call had before this one, redirects included.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether a redirect has led to another scheme, host or port than those of the call, now or earlier.
    pub fn is_other_origin(&self) -> bool {
        self.request.is_other_origin()
    }

    /// The first header line with this name, in any case, that this send has of the caller or of the hook.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let own = self.fields.get(name);
        own.or_else(|| self.request.header_now(name))
    }

    /// The body, if it is in memory; empty if there is none. `None` for a stream.
    pub fn body(&self) -> Option<&[u8]> {
        self.request.body_in_memory()
    }

    /// Sends this header, in place of all of this name that the caller has set.
    ///
    /// Headers that decide how messages are read or where they go cannot be set here: `Host`, `Connection`, `Upgrade`,
    /// `Content-Length`, `Transfer-Encoding`, `Trailer`, `Expect`, `Accept-Encoding`, `Range`, `Proxy-Authorization`, and
    /// also not `User-Agent` and `Cookie`, which have their own settings. The call then fails, as it does for a name or a
    /// value that is not valid.
    pub fn set_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        self.fields.set(name, value.as_ref());
        self
    }
}

impl fmt::Debug for Outgoing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("method", &self.method())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// The hook of a client, with the buffer for its headers.
pub(super) struct HookedEncoder {
    hook: SendHook,
    fields: HopFields,
}

impl HookedEncoder {
    pub(super) fn new(hook: SendHook) -> Self {
        Self {
            hook,
            fields: HopFields::default(),
        }
    }

    /// Encodes a request with the headers of the hook.
    #[cold]
    pub(super) fn encode(
        &mut self,
        request: &mut Request,
        defaults: &Defaults,
        attempt: u32,
    ) -> Result<(), Misuse> {
        self.fields.clear();
        (self.hook.before.0)(&mut Outgoing {
            request,
            host: &defaults.host,
            attempt,
            fields: &mut self.fields,
        })
        .map_err(Misuse::SendHook)?;
        request.encode_with(defaults, &self.fields)
    }

    /// Whether a request is sent once more because of its answer.
    pub(super) fn repeats(&self, request: &Request, response: &Response) -> bool {
        let again = self.hook.unauthorized.as_ref();
        response.status() == 401
            && request.is_replayable()
            && again.is_some_and(|Hook(again)| again(request.url(), response))
    }

    pub(super) fn looks_at_answers(&self) -> bool {
        self.hook.unauthorized.is_some()
    }
}
