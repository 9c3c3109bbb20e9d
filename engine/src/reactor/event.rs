//! What the reactor reports to the client.

use std::sync::Arc;
use std::time::Duration;

use super::{CallKey, ConnKey, Endpoints, OpeningKey, PoolSlot, ProxyMessage, TimerOwner};
use crate::error::{Error, Sent, TimeLimit};
use crate::proto::Reuse;

/// Something about which the client must decide.
#[derive(Debug)]
pub(crate) enum ReactorEvent {
    /// A connection of that opening is up; handshakes may have to follow.
    Connected { opening: OpeningKey, conn: ConnKey },
    /// A connection of that opening has done its handshakes.
    Ready { opening: OpeningKey, conn: ConnKey },
    /// A message about a tunnel was sent to a proxy, or came from one.
    Tunnel {
        endpoints: Arc<Endpoints>,
        message: ProxyMessage,
    },
    /// A handshake failed. The connection is closed.
    HandshakeFailed { opening: OpeningKey, error: Error },
    /// An address was not reached. The connection is closed.
    ConnectFailed {
        opening: OpeningKey,
        conn: ConnKey,
        error: Error,
    },
    /// A response is complete: that of a call, or an abandoned one that the connection was draining. `keep_alive` is
    /// how long the server keeps an idle connection, if it has said so.
    Finished {
        conn: ConnKey,
        call: Option<CallKey>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    },
    /// In a pipeline, this many responses are complete, abandoned ones included, and other calls on the connection go on.
    /// The calls are in [`Common::pipelining`](super::Common::pipelining).
    Answered {
        slot: PoolSlot,
        conn: ConnKey,
        responses: usize,
    },
    /// In a pipeline, the connection of a call is closed, and the response of the call had not begun. If `error` is
    /// `None`, the request was not sent, or it is idempotent and the answer before it said that the connection ends: the
    /// call moves to another connection.
    Unanswered {
        call: CallKey,
        sent: Sent,
        error: Option<Error>,
    },
    /// The server does not handle several requests at a time.
    PipeliningBroken,
    /// As that, unless the server only took long for the second request of a connection.
    PipeliningDoubted,
    /// The attempt of a call failed. The connection is closed.
    Failed {
        slot: PoolSlot,
        call: CallKey,
        error: Error,
    },
    /// The head of a streamed response, or of a redirection (3xx), has come.
    Head(CallKey),
    /// More bytes of a streamed body have come, after its consumer had taken all bytes.
    BodyReady(CallKey),
    /// An idle or draining connection is closed.
    Lost(PoolSlot),
    /// The idle time of a connection is over.
    IdleDue(ConnKey),
    /// A call has waited for a connection as long as its limit allows.
    WaitOver(CallKey, TimeLimit),
    /// The next attempt of a call is due.
    PauseOver(CallKey),
    /// A call on a connection has run out of time.
    TimedOut {
        conn: ConnKey,
        call: CallKey,
        limit: TimeLimit,
    },
    /// A timer of the client has fired.
    Timer(TimerOwner),
}
