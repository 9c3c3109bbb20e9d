//! Spans and events of calls, for `tracing`.

use std::borrow::Cow;
use std::collections::HashMap;

use tracing::field::{Empty, display};
use tracing::{Span, debug, debug_span, trace};

use super::{CallId, Observer, ObserverEvent};
use crate::error::redacted;
use crate::proto::Url;
use crate::sync::{Mutex, lock};

impl Observer {
    /// An observer that makes a `tracing` span for each call, with the events `sent`, `head`, `redirected`, `retrying`
    /// and `failed`. Events of connections have no span, because a connection is opened for no particular call:
    /// `resolved`, `connecting`, `connected`, `ready` and `not connected`. The level is `DEBUG`, except for
    /// `connecting`, which has `TRACE`.
    ///
    /// A span has the fields `method`, `url` (without user information), `tag`, and, as soon as they are known,
    /// `remote`, `status` and `error`. Its parent is the span that the client's thread is in when the call begins. A
    /// call that moves to another thread of a [`Shared`](crate::Shared) client gets another span there.
    ///
    /// ```
    /// use courser::{HostConfig, Observer};
    ///
    /// let config = HostConfig { observer: Some(Observer::tracing()), ..HostConfig::default() };
    /// ```
    pub fn tracing() -> Self {
        Self::each_client(|| {
            let spans = Mutex::new(HashMap::new());
            Self::new(move |event| {
                observe(&mut lock(&spans), event);
            })
        })
    }
}

/// `spans` holds the calls that have not ended, if their spans are enabled.
fn observe(spans: &mut HashMap<CallId, Span>, event: &ObserverEvent<'_>) {
    match *event {
        ObserverEvent::Resolved { name, addresses } => debug!(name, ?addresses, "resolved"),
        ObserverEvent::Connecting { remote } => trace!(%remote, "connecting"),
        ObserverEvent::ConnectFailed { error } => {
            debug!(remote = error.remote().map(display), %error, "not connected");
        }
        ObserverEvent::Connected { remote, local } => {
            debug!(%remote, local = local.map(display), "connected");
        }
        ObserverEvent::Tunnelling { remote, .. } => trace!(%remote, "asking for a tunnel"),
        ObserverEvent::TunnelAnswered { remote, status, .. } => {
            debug!(%remote, status, "asked for a tunnel");
        }
        ObserverEvent::Ready { remote, tls, .. } => debug!(%remote, ?tls, "ready"),
        ObserverEvent::Ejected { remote, until } => debug!(%remote, ?until, "ejected"),
        ObserverEvent::Begun {
            call,
            tag,
            method,
            target,
        } => {
            let span = debug_span!(
                "call",
                method,
                url = %shown(target),
                tag,
                remote = Empty,
                status = Empty,
                error = Empty,
            );
            if !span.is_disabled() {
                spans.insert(call, span);
            }
        }
        ObserverEvent::Sending {
            call,
            remote,
            reused,
            ..
        } => within(spans, call, |span| {
            span.record("remote", display(remote));
            debug!(parent: span, %remote, reused, "sent");
        }),
        ObserverEvent::Head { call, response, .. } => within(spans, call, |span| {
            span.record("status", response.status());
            debug!(parent: span, status = response.status(), "head");
        }),
        ObserverEvent::Redirected { call, url, .. } => within(spans, call, |span| {
            debug!(parent: span, url = %shown(url), "redirected");
        }),
        ObserverEvent::Retrying {
            call, cause, pause, ..
        } => within(spans, call, |span| {
            debug!(parent: span, error = %cause, ?pause, "retrying");
        }),
        ObserverEvent::Breaker { call, state, .. } => within(spans, call, |span| {
            debug!(parent: span, ?state, "breaker");
        }),
        ObserverEvent::Held { call, .. } => within(spans, call, |span| {
            debug!(parent: span, "held back");
        }),
        ObserverEvent::HandedOver { call, .. } => {
            if let Some(span) = spans.remove(&call) {
                debug!(parent: &span, "goes on on another thread");
            }
        }
        ObserverEvent::Ended { call, error, .. } => {
            if let (Some(span), Some(error)) = (spans.remove(&call), error) {
                // The span has the URL.
                let what = error.what();
                span.record("error", display(&what));
                debug!(parent: &span, error = %what, phase = %error.phase(), "failed");
            }
        }
    }
}

/// Notes an event of a call whose span is enabled.
fn within(spans: &HashMap<CallId, Span>, call: CallId, note: impl FnOnce(&Span)) {
    if let Some(span) = spans.get(&call) {
        note(span);
    }
}

/// A target without user information.
fn shown(target: &str) -> Cow<'_, str> {
    let is_path = target.starts_with('/');
    if is_path || Url::parse(target).is_ok_and(|url| url.userinfo().is_none()) {
        target.into()
    } else {
        redacted(target).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_is_not_shown() {
        for (target, expected) in [
            ("/p@q", "/p@q"),
            ("http://h/p@q", "http://h/p@q"),
            ("http://user:secret@h/p", "http://***@h/p"),
            ("user:secret@h", "***@h"),
        ] {
            assert_eq!(shown(target), expected);
        }
    }
}
