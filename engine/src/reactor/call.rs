//! Calls: what the reactor keeps of each one from its submission to its completion.

use std::net::SocketAddrV4;
use std::sync::Arc;

use super::body_memory::HeldSteps;
use super::{Armed, ConnKey, Endpoints, HostKey, Opened, Overrides, Server, Settings};
use crate::error::Error;
use crate::net::Address;
use crate::policy::{Timeouts, WaitId};
use crate::proto::{BodyMode, Request, Response};
use crate::time::Time;

/// A call from submission to completion.
pub(crate) struct ActiveCall<C> {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) tag: u64,
    pub(crate) mode: BodyMode,
    /// The host whose pool serves the call; `None` before the host is known.
    pub(crate) host: Option<HostKey>,
    /// What holds for this call instead of the client's settings.
    pub(crate) overrides: Option<Box<Overrides>>,
    pub(crate) deadline: Option<Time>,
    pub(crate) state: CallState,
    /// Once the call has ended.
    pub(crate) outcome: Result<(), Error>,
    pub(crate) timestamps: Timestamps,
    /// The number among the calls of its connection, if the connection has a pipeline.
    pub(crate) number: u32,
    /// What the client keeps of the call. The reactor does not look at this.
    pub(crate) client: C,
    pub(crate) head: HeadState,
    pub(crate) redirect: RedirectState,
    /// How much of a streamed body, as the response holds it, the consumer has taken.
    pub(crate) taken: usize,
    /// The part of the body that counts in the memory of all bodies.
    pub(crate) held: HeldSteps,
    /// The consumer of a streamed body was notified that there are bytes to take.
    pub(crate) notified: bool,
    pub(crate) armed: Armed,
}

impl<C: Default> ActiveCall<C> {
    /// A call for which nothing has been done yet.
    #[inline(always)] // so that the call is constructed in its final place
    pub(crate) fn new(now: Time, request: Request, response: Response) -> Self {
        Self {
            request,
            response,
            tag: 0,
            mode: BodyMode::Buffer,
            host: None,
            overrides: None,
            deadline: None,
            state: CallState::New,
            outcome: Ok(()),
            timestamps: Timestamps::new(now),
            number: 0,
            client: C::default(),
            head: HeadState::Awaited,
            redirect: RedirectState::Undecided,
            taken: 0,
            held: 0,
            notified: false,
            armed: Armed::default(),
        }
    }
}

impl<C> ActiveCall<C> {
    /// Whether the deadline has passed.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    #[inline(always)] // with the constant `Ok(())`, little code is left
    pub(crate) fn end(&mut self, now: Time, outcome: Result<(), Error>) {
        if outcome.is_err() && self.is_new() {
            self.response.clear(); // the caller's last answer, if the call has not begun
        }
        self.timestamps.ended = Some(now);
        self.state = CallState::Ended;
        self.outcome = outcome;
    }

    /// Whether nothing was decided yet about the response that is being received.
    pub(crate) fn is_undecided(&self) -> bool {
        self.head == HeadState::Awaited
            && self.redirect == RedirectState::Undecided
            && !matches!(self.state, CallState::Ended | CallState::Pausing { .. })
    }

    /// Whether the call is to be sent to a host: for the first time, or after a redirect.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.state, CallState::New)
    }

    /// Whether the call has a limit of its own for the wait for a first byte, and the adaptive limit of the host does not
    /// apply.
    pub(crate) fn has_own_first_byte_limit(&self) -> bool {
        let own = self.own_timeouts();
        own.is_some_and(|own| own.first_byte.is_some())
    }

    pub(super) fn timeouts<'a>(&'a self, settings: &'a Settings) -> &'a Timeouts {
        self.own_timeouts().unwrap_or(&settings.timeouts)
    }

    /// The call's own limits in time.
    #[inline]
    pub(crate) fn own_timeouts(&self) -> Option<&Timeouts> {
        self.overrides.as_deref()?.timeouts.as_ref()
    }
}

/// The state of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallState {
    /// Submitted, and not yet sent to a host.
    New,
    Waiting {
        id: WaitId,
        since: Time,
    },
    OnConn(ConnKey),
    /// Waits until the time of the next attempt. If `fresh`, that attempt takes only a new connection.
    Pausing {
        until: Time,
        fresh: bool,
    },
    /// The call has ended. The caller may not have taken the completion, or all of a streamed body.
    Ended,
}

/// The head of a streamed response. For a buffered call, always `Awaited`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeadState {
    Awaited,
    /// The head has come, and the caller has not taken it.
    Ready,
    Given,
}

/// What the client has decided about the response that is being received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RedirectState {
    Undecided,
    /// The response redirects, and the client will follow.
    Followed,
    /// The response redirects, and is the result of the call all the same.
    Delivered,
}

impl RedirectState {
    #[inline]
    pub(crate) fn is_followed(self) -> bool {
        self == Self::Followed
    }
}

/// When each phase of a call began and ended, and on which connection.
#[derive(Clone, Debug)]
pub(crate) struct Timestamps {
    pub(crate) begun: Time,
    pub(crate) assigned: Option<Time>,
    pub(crate) sent: Option<Time>,
    /// When the call came to the front of a pipeline; `None` if the call was in front from the beginning.
    pub(crate) in_front: Option<Time>,
    pub(crate) first_byte: Option<Time>,
    pub(crate) ended: Option<Time>,
    /// Bytes of HTTP sent and received, all attempts together.
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    /// How often a connection was given to the call, or could not be opened for it.
    pub(crate) attempts: u32,
    pub(crate) reused: bool,
    /// A throttle held the call back.
    pub(crate) held: bool,
    /// A body follows, which the caller reads.
    pub(crate) is_streamed: bool,
    further: Further,
}

impl Timestamps {
    pub(crate) fn new(begun: Time) -> Self {
        Self {
            begun,
            assigned: None,
            sent: None,
            in_front: None,
            first_byte: None,
            ended: None,
            bytes_out: 0,
            bytes_in: 0,
            attempts: 0,
            reused: false,
            held: false,
            is_streamed: false,
            further: Further::Nothing,
        }
    }

    /// The addresses of the connection; `None` if there was none.
    pub(crate) fn endpoints(&self) -> Option<Endpoints> {
        match &self.further {
            Further::Nothing => None,
            &Further::V4([remote, local]) => Some(Endpoints {
                remote: Address::Tcp(remote.into()),
                local: Some(Address::Tcp(local.into())),
                server: Server::Remote,
                v4: None,
            }),
            Further::Endpoints(endpoints) => Some(Endpoints::clone(endpoints)),
            Further::Details(details) => details.endpoints.as_deref().cloned(),
        }
    }

    fn details(&self) -> Option<&Details> {
        match &self.further {
            Further::Details(details) => Some(details),
            _ => None,
        }
    }

    #[cold]
    fn change_details(&mut self, change: impl FnOnce(&mut Details)) {
        if self.details().is_none() {
            let endpoints = self.endpoints().map(Arc::new);
            let details = Details {
                endpoints,
                ..Details::default()
            };
            self.further = Further::Details(Box::new(details));
        }
        if let Further::Details(details) = &mut self.further {
            change(details);
        }
    }

    /// The redirects that were followed.
    pub(crate) fn hops(&self) -> &[Hop] {
        self.details().map_or(&[], |details| &details.hops)
    }

    pub(crate) fn add_hop(&mut self, hop: Hop) {
        self.change_details(|details| details.hops.push(hop));
    }

    /// How the connection was opened; `None` if it was open before.
    pub(crate) fn opened(&self) -> Option<&Opened> {
        self.details()?.opened.as_deref()
    }

    /// Sets how the connection of this attempt was opened.
    #[inline]
    pub(super) fn set_opened(&mut self, opened: Option<Box<Opened>>) {
        if opened.is_some() || self.details().is_some() {
            self.change_details(|details| details.opened = opened);
        }
    }

    /// The call gets a connection.
    #[inline(always)] // on the path of every call
    pub(super) fn begin_attempt(&mut self, now: Time, reused: bool, endpoints: &Arc<Endpoints>) {
        self.attempts += 1;
        self.assigned = Some(now);
        self.sent = None;
        self.in_front = None;
        self.first_byte = None;
        self.reused = reused;
        match (&mut self.further, endpoints.v4) {
            (Further::Details(details), _) => details.endpoints = Some(Arc::clone(endpoints)),
            (further @ (Further::Nothing | Further::V4(_)), Some(v4)) => {
                // Nothing is to be freed there.
                std::mem::forget(std::mem::replace(further, Further::V4(v4)));
            }
            (further, Some(v4)) => *further = Further::V4(v4),
            (further, None) => *further = Further::Endpoints(Arc::clone(endpoints)),
        }
    }
}

/// What a report tells beside times and counts.
#[derive(Clone, Debug)]
enum Further {
    Nothing,
    /// The remote and the local address, without a proxy. A copy takes less time than a count of who shares them, which
    /// would be atomic: the report of a call may be in another thread.
    V4([SocketAddrV4; 2]),
    /// Other addresses: a copy would be a third of the size of a call.
    Endpoints(Arc<Endpoints>),
    /// What few calls have. So it takes no room of its own in a call, which is moved several times.
    Details(Box<Details>),
}

#[derive(Clone, Debug, Default)]
struct Details {
    endpoints: Option<Arc<Endpoints>>,
    hops: Vec<Hop>,
    opened: Option<Box<Opened>>,
}

/// A redirect that was followed.
///
/// ```
/// # fn example(report: &courser::Report) {
/// for hop in report.redirects() {
///     println!("{} to {}", hop.status, hop.url);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Hop {
    /// The status of the response that redirected.
    pub status: u16,
    /// The URL that the response redirected to.
    pub url: Box<str>,
}
