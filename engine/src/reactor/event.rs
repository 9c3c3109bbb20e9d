//! What the reactor reports to the client.

use std::sync::Arc;
use std::time::Duration;

use super::{CallKey, ConnKey, Endpoints, OpeningKey, PoolSlot, ProxyMessage, TimerOwner};
use crate::error::{Error, Sent, TimeLimit};
use crate::proto::Reuse;

/// Something that the client must decide about.
#[derive(Debug)]
pub(crate) enum ReactorEvent {
    /// A connection of that opening is up.
    Connected { opening: OpeningKey, conn: ConnKey },
    /// A connection of that opening has done its handshakes.
    Ready { opening: OpeningKey, conn: ConnKey },
    /// Somebody said something about a tunnel.
    Tunnel {
        endpoints: Arc<Endpoints>,
        message: ProxyMessage,
    },
    /// A handshake failed; the connection is gone.
    HandshakeFailed { opening: OpeningKey, error: Error },
    /// An address was not reached; the connection is gone.
    ConnectFailed {
        opening: OpeningKey,
        conn: ConnKey,
        error: Error,
    },
    /// A response is complete: a call's, or the late one that the connection was draining. `keep_alive` is the
    /// server's own limit on idleness.
    Finished {
        conn: ConnKey,
        call: Option<CallKey>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    },
    /// A call is answered, unless nobody waited for it, and others on its connection go on.
    Answered {
        slot: PoolSlot,
        conn: ConnKey,
        call: Option<CallKey>,
    },
    /// A call's connection is gone before its answer was next. Without an error, its request was not looked at,
    /// however much of it was sent.
    Unanswered {
        call: CallKey,
        sent: Sent,
        error: Option<Error>,
    },
    /// The server does not cope with several requests at a time.
    PipeliningBroken,
    /// A call failed; its connection is gone.
    Failed {
        slot: PoolSlot,
        call: CallKey,
        error: Error,
    },
    /// The head of a streamed response is there.
    Head(CallKey),
    /// A consumer that had taken everything can go on.
    BodyReady(CallKey),
    /// An idle or draining connection is gone.
    Lost(PoolSlot),
    /// A connection has been idle for as long as it was told.
    IdleDue(ConnKey),
    /// A call has waited for as long as it may.
    WaitOver(CallKey, TimeLimit),
    /// A call's next attempt is due.
    PauseOver(CallKey),
    /// A call on a connection has run out of time.
    TimedOut {
        conn: ConnKey,
        call: CallKey,
        limit: TimeLimit,
    },
    /// A time has come that the client asked for.
    Timer(TimerOwner),
}
