//! Faults planted in the engine on purpose, each of which the simulation must catch. This checks the checks.
//!
//! `.ci/planted` makes this a module of a copy of the engine. The patches beside this file add the places where
//! `planted!(Name)` plants the fault `Name`. Which fault is planted is chosen while the program runs, for each thread,
//! so that one build tests all of them.

use std::cell::Cell;

/// The faults, and the list of all of them.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

faults! {
    /// A connection that is released while calls wait becomes idle.
    LostWakeUp,
    /// A slot of a pool is freed twice.
    DoubleRelease,
    /// What the peer sends on an idle connection, or that the peer closes it, is ignored.
    StaleReuse,
    /// A connection is kept although the server has said that the server closes it.
    ReuseAfterClose,
    /// A request that must not be repeated is repeated after a connection was found closed.
    RepeatedPost,
    /// Such a request is repeated when an answer before its own has ended the connection.
    PostBehindClose,
    /// A request that goes alone shares its connection.
    SharedPost,
    /// The deadline of a call does not count any more once the call has a connection.
    MissedDeadline,
    /// A pool opens one connection too many.
    OverTheCap,
    /// A streaming call completes with its head, and again with its end.
    CompletedTwice,
    /// The connection of a call that timed out is used again before the answer has come.
    CrossedAnswer,
    /// Retries go on without a budget.
    IgnoredBudget,
    /// Calls go on while the breaker is open.
    IgnoredBreaker,
    /// A breaker that is open stays open.
    NeverHalfOpen,
    /// A half-open breaker admits everything.
    EndlessProbes,
    /// Attempts follow each other without a pause.
    IgnoredBackoff,
    /// `Retry-After` is ignored.
    IgnoredRetryAfter,
    /// More attempts than allowed.
    EndlessAttempts,
    /// A timer of a connection that fired too early is not set again.
    LostTimer,
    /// A timer fires for ever, because what it is for is not done.
    SpinningTimer,
    /// An opening that failed keeps its slot in the pool.
    LeakedSlot,
    /// The newest call gets the next connection.
    BrokenFifo,
    /// A cancelled call keeps its place in the wait queue.
    SentAfterCancel,
    /// A body that the end of the connection cuts short is taken as complete.
    TruncatedBody,
    /// A host that waits for room under the limit over all hosts is forgotten.
    ForgottenHost,
    /// A machine without a descriptor is taken for a failure of the host.
    BlamedHost,
    /// Openings that wait for a descriptor are forgotten.
    ForgottenShortage,
    /// A call goes to another host.
    CrossedHosts,
    /// Calls go on although the rate of their host is used up.
    IgnoredRate,
    /// A connection is read as long as the peer sends, and the others wait.
    EndlessReads,
    /// Calls go to addresses that are ejected.
    IgnoredEjection,
    /// The names of one domain take all slots of the resolver.
    GreedyZone,
    /// A slow lookup keeps its slot in the resolver while others wait.
    KeptSlot,
    /// A lookup goes on although no call waits for the name.
    ForgottenLookup,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Plants a fault in the clients of this thread, instead of the one before.
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

#[inline]
pub(crate) fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

macro_rules! planted {
    ($name:ident) => {
        crate::fault::is_planted(crate::fault::Fault::$name)
    };
}
