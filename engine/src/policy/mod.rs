//! Decisions, without I/O: who may open a connection and who waits, when a wait ends, what may be sent again. Time
//! comes in as an argument; nothing here knows a socket.

mod address;
mod dial;
mod dns;
pub(crate) mod pool;
mod queue;
mod retry;
mod timeouts;

pub use address::{AddressHook, AddressPolicy, BadNetwork, Network};
pub use dns::{DnsConfig, DnsCounters, Override};
pub use pool::{Counters, ReuseOrder, WaitPolicy};
pub use retry::{FailedAttempt, Retry, RetryHook};
pub use timeouts::{LatePolicy, Timeouts};

pub(crate) use dial::{Dial, RoundRobin};
pub(crate) use dns::{Found, NameCache, interleave};
pub(crate) use pool::{Checkout, Next, Pool, PoolConfig};
pub(crate) use pool::{SlotId, WaitId};
pub(crate) use retry::{Verdict, is_stale};
pub(crate) use timeouts::later;
