//! How many retries are allowed in proportion to the requests, so that retries do not multiply an outage.

use std::time::{Duration, Instant};

use super::rate::{Rate, RateLimiter};

/// A budget for the retries of a host. Each request earns a part of a retry, and a floor adds retries with time, so
/// that a host with few requests can retry, too. Unused retries are kept up to a cap.
///
/// In any order of requests and retries, there are never more retries than `ratio` times the requests, plus what the
/// floor gives in the time, plus `reserve`.
///
/// ```
/// use std::time::Instant;
/// use courser::policy::RetryBudget;
///
/// let mut budget = RetryBudget { floor: None, reserve: 0, ..RetryBudget::default() }.start();
/// let now = Instant::now();
/// for _ in 0..10 {
///     budget.note_request();
/// }
/// // 20 % of ten requests.
/// assert!(budget.withdraw(now) && budget.withdraw(now));
/// assert!(!budget.withdraw(now));
/// ```
///
/// In a client, for each host:
///
/// ```
/// use courser::policy::{FailureClass, RetryBudget, RetryOn, RetryRule};
/// use courser::{HostConfig, Retry};
///
/// let config = HostConfig {
///     retry: Retry { rules: vec![RetryRule::new(RetryOn::Failure(FailureClass::Reset))], ..Retry::default() },
///     // One retry for each twenty requests, and no others than the reserve.
///     retry_budget: Some(RetryBudget { ratio: 0.05, floor: None, ..RetryBudget::default() }),
///     ..HostConfig::default()
/// };
/// # let _ = config;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudget {
    /// Retries that one request earns, from 0 to 1, in steps of a thousandth. Default 0.2.
    pub ratio: f64,
    /// Retries that time adds. Default 1 per second, at most 10 at once.
    pub floor: Option<Rate>,
    /// Retries at the start. Default 10.
    pub reserve: u32,
    /// The most earned retries that are kept, with the reserve. Default 100.
    pub most: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        let floor = Rate::every(Duration::from_secs(1));
        Self {
            ratio: 0.2,
            floor: std::num::NonZeroU64::new(10).map(|burst| floor.burst(burst)),
            reserve: 10,
            most: 100,
        }
    }
}

impl RetryBudget {
    /// The account of one host.
    pub fn start(self) -> RetryAccount {
        RetryAccount {
            per_request: (self.ratio.clamp(0.0, 1.0) * f64::from(UNIT)).round() as u64,
            most: u64::from(self.most.max(self.reserve)) * u64::from(UNIT),
            balance: u64::from(self.reserve) * u64::from(UNIT),
            floor: self.floor.map(RateLimiter::new),
        }
    }
}

/// The balance of a [`RetryBudget`].
#[derive(Clone, Debug)]
pub struct RetryAccount {
    /// In thousandths of a retry, like the next two fields.
    per_request: u64,
    most: u64,
    balance: u64,
    floor: Option<RateLimiter>,
}

impl RetryAccount {
    /// Counts a call. Its retries are not counted here.
    pub fn note_request(&mut self) {
        self.balance = (self.balance + self.per_request).min(self.most);
    }

    /// Takes one retry. Returns false if there is none.
    pub fn withdraw(&mut self, now: Instant) -> bool {
        if let Some(left) = self.balance.checked_sub(u64::from(UNIT)) {
            self.balance = left;
            return true;
        }
        let floor = self.floor.as_mut();
        floor.is_some_and(|floor| floor.take(now, 1).is_ok())
    }
}

const UNIT: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_a_share_and_a_floor() {
        let start = Instant::now();
        let mut account = RetryBudget::default().start();
        // The reserve, and the burst of the floor.
        let taken = (0..100).filter(|_| account.withdraw(start)).count();
        assert_eq!(taken, 20);
        assert!(!account.withdraw(start + Duration::from_millis(999)));
        assert!(account.withdraw(start + Duration::from_secs(1)));
        for _ in 0..1_000_000 {
            account.note_request();
        }
        let taken = (0..1000)
            .filter(|_| account.withdraw(start + Duration::from_secs(1)))
            .count();
        assert_eq!(taken, 100, "no more is kept");
    }
}
