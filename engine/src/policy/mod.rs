//! Decisions without I/O: which call may open a connection and which waits, when a wait ends, what is tried again. The
//! time is an argument; no socket is known here.

mod adaptive;
mod address;
mod backoff;
mod balance;
mod breaker;
pub(crate) mod buckets;
mod budget;
mod dial;
mod dns;
mod host_hash;
mod pipelining;
pub(crate) mod pool;
mod proxy;
pub(crate) mod queue;
mod rate;
mod redirect;
mod retry;
pub(crate) mod room;
mod scarcity;
mod throttle;
mod timeouts;

pub use adaptive::{AdaptiveTimeout, Latencies};
pub use address::{AddressHook, AddressPolicy, BadNetwork, Network};
pub use backoff::{Backoff, retry_after};
pub use balance::{BalanceConfig, Balancer, Spread};
pub use breaker::{Breaker, BreakerConfig, BreakerPermit, BreakerState, Health, Statuses};
pub use budget::{RetryAccount, RetryBudget};
pub use dns::{DnsConfig, DnsCounters, Family, Override};
pub use pipelining::{Overflow, Pipelined};
pub use pool::{Caps, Counters, ReuseOrder, WaitPolicy};
pub use proxy::{Proxies, Proxy, ProxyKind};
pub use rate::{Rate, RateLimiter};
pub use redirect::{Redirect, RedirectAction, RedirectHook, Redirects};
pub use retry::{FailedAttempt, FailureClass, Retry, RetryHook, RetryOn, RetryRule, RetryVia};
pub use timeouts::{LatePolicy, Timeouts};

pub(crate) use balance::AttemptPermit;
pub(crate) use breaker::{health_of, health_of_address};
pub(crate) use dial::{Avoided, Race, RaceStep, interleave};
pub(crate) use dns::{Found, NameCache, Question, literal};
pub(crate) use host_hash::host_hash;
pub(crate) use pipelining::PipelineLoads;
pub(crate) use pool::{Next, Pool, PoolConfig, SlotId, WaitId};
pub(crate) use redirect::Follow;
pub(crate) use retry::{Verdict, is_stale};
pub(crate) use scarcity::{AfterShortage, Scarcity};
pub(crate) use throttle::{Rates, Throttle};
pub(crate) use timeouts::later;
