//! Faults planted on purpose, each of which the simulation must catch: this is how the checks are checked. Only for
//! the project's own tests, by the feature `mutations`; without it, the check is a constant and nothing is left of them.
//!
//! At each place that a fault can be in stands `mutation::on(Mutation::Name)`. Which one is there is chosen while the
//! program runs, and for each thread, so that one build tests all of them.

/// The faults and the list of all of them, which can lack none.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

faults! {
    /// A connection that is given back while calls wait for it becomes idle.
    LostWakeUp,
    /// A place in the pool is given back twice.
    DoubleRelease,
    /// What the peer says or ends on an idle connection is not looked at.
    StaleReuse,
    /// A connection is kept though the server has said that it closes it.
    ReuseAfterClose,
    /// What may not be repeated is repeated on a dead connection.
    RepeatedPost,
    /// The deadline of a call does not count any more once it has a connection.
    MissedDeadline,
    /// One connection too many.
    OverTheCap,
    /// A streaming call completes with its head, and again with its end.
    CompletedTwice,
    /// The connection of a call that was too late is used again before its answer has come.
    CrossedAnswer,
    /// Retries go on without a budget.
    IgnoredBudget,
    /// Calls go on while the breaker is open.
    IgnoredBreaker,
    /// A breaker that is open stays so.
    NeverHalfOpen,
    /// A half-open breaker lets everything through.
    EndlessProbes,
    /// Attempts follow each other at once.
    IgnoredBackoff,
    /// What the server says about when to come back is not looked at.
    IgnoredRetryAfter,
    /// More attempts than are allowed.
    EndlessAttempts,
    /// A timer of a connection that came up too early is not set again.
    LostTimer,
    /// A timer comes up for ever, because what it is for is not done.
    SpinningTimer,
    /// An opening that failed keeps its place in the pool.
    LeakedSlot,
    /// The newest call gets the next connection.
    BrokenFifo,
    /// A cancelled call keeps its place in the queue.
    SentAfterCancel,
    /// A body that the end of the connection cuts short is taken for whole.
    TruncatedBody,
    /// A host that waits for room among the connections of all hosts is forgotten.
    ForgottenHost,
    /// A call goes to another host.
    CrossedHosts,
    /// Calls go on though their host's rate is used up.
    IgnoredRate,
    /// Calls go on though as many are in flight as the host copes with.
    IgnoredConcurrency,
    /// Calls go to addresses that have been ejected.
    IgnoredEjection,
}

pub(crate) use plant::on;
#[cfg(feature = "mutations")]
pub use plant::plant;

#[cfg(not(feature = "mutations"))]
mod plant {
    use super::Mutation;

    #[inline(always)]
    pub(crate) const fn on(_: Mutation) -> bool {
        false
    }
}

#[cfg(feature = "mutations")]
mod plant {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static PLANTED: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Plants a fault in the clients of this thread, instead of the one before.
    pub fn plant(mutation: Option<Mutation>) {
        PLANTED.set(mutation);
    }

    #[inline]
    pub(crate) fn on(mutation: Mutation) -> bool {
        PLANTED.get() == Some(mutation)
    }
}
