//! Name lookup: what a resolver is, and its answers.
//!
//! [`HickoryResolver`] asks name servers; [`SystemResolver`] calls the system's `getaddrinfo`. Both work on threads of
//! their own and answer through a [`Reply`]. Neither keeps answers: the client's cache stands before them. IP addresses
//! and `localhost` (RFC 6761 §6.3) do not reach a resolver.

use std::fmt;
use std::io;

#[cfg(feature = "hickory")]
mod files;
#[cfg(feature = "hickory")]
mod hickory;
#[cfg(feature = "hickory")]
mod hickory_runtime;
pub(crate) mod lookup_queue;
mod system;

#[cfg(feature = "hickory")]
pub use hickory::{HickoryResolver, NameServers};
pub use system::SystemResolver;

pub use crate::address::Answer;
pub use crate::error::DnsError;

use super::shortage::shortage_in;

/// Looks up host names without blocking.
///
/// ```
/// use std::time::Duration;
/// use courser::error::DnsError;
/// use courser::{Answer, Reply, Resolver};
///
/// struct Fixed;
///
/// impl Resolver for Fixed {
///     fn lookup(&mut self, name: &str, reply: Reply) {
///         reply.answer(match name {
///             "db.internal" => Answer::found(["10.0.0.7".parse().unwrap()], Duration::from_secs(30)),
///             _ => Answer::failed(DnsError::NotFound),
///         });
///     }
/// }
///
/// Fixed.lookup("db.internal", Reply::new(|answer| assert_eq!(answer.addresses.unwrap().len(), 1)));
/// ```
pub trait Resolver: Send {
    /// Starts a lookup of `name`, which is in lower-case ASCII and may end in a dot. The answer is given to `reply`,
    /// from any thread, at any time. The client has at most one lookup for a name at a time, apart from cancelled ones,
    /// and limits the time that its calls wait.
    fn lookup(&mut self, name: &str, reply: Reply);

    /// No call waits for the answer to `name` any more. The resolver drops the lookup if it holds up others; otherwise
    /// the answer may still come, and is cached. A lookup of the same name may follow at once. Default: does nothing.
    fn cancel(&mut self, name: &str) {
        let _ = name;
    }
}

/// The resolver of a client that is given none.
#[cfg(feature = "hickory")]
pub(crate) fn default_resolver() -> HickoryResolver {
    HickoryResolver::system()
}

/// The resolver of a client that is given none.
#[cfg(not(feature = "hickory"))]
pub(crate) fn default_resolver() -> SystemResolver {
    SystemResolver::new()
}

/// The answer if no thread can be started for the lookups.
fn cannot_start(error: &io::Error) -> Answer {
    Answer::failed(match shortage_in(error) {
        Some(shortage) => DnsError::Shortage(shortage),
        None => DnsError::Resolver(format!("the resolver cannot start: {error}").into()),
    })
}

/// Takes the answer of a [`Resolver`]. A reply that is dropped without an answer answers [`DnsError::Unanswered`].
pub struct Reply(Option<Box<dyn FnOnce(Answer) + Send>>);

impl Reply {
    /// Passes the answer to `deliver`, on the thread that answers.
    pub fn new(deliver: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// Gives the answer.
    pub fn answer(mut self, answer: Answer) {
        if let Some(deliver) = self.0.take() {
            deliver(answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Answer::failed(DnsError::Unanswered));
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
