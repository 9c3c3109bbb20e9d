//! Recognises failures that are not the fault of the URLs. Pure: time is an argument.
//!
//! - [`OwnNetwork`]: the own network fails. Nothing is asked, and what was taken in the window is void.
//! - [`HostFlip`]: a host turned negative as a whole, as when a cache is purged. Its URLs are held, and their clock stops.
//! - [`HoldBack`]: failures that are not believed before it is clear that the own network works.
//! - [`PruneBudget`]: how many URLs may be pruned in a day.
//!
//! Each is driven by what a run learns, and says what to do next; who asks and who stores is left to the caller. The
//! rules have the names of the table `[guard]` in the configuration.
//!
//! ```
//! use std::time::Duration;
//!
//! use verdict::guard::{FlipStep, HostFlip, PruneBudget};
//! use verdict::life::State;
//! use verdict::Class;
//! use jiff::Timestamp;
//!
//! let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
//! let mut host = HostFlip::default();
//!
//! // A URL that was alive is negative: is that the URL, or the host?
//! let step = host.handle_verdict(now, State::Alive, Class::Negative);
//! assert_eq!(step, Some(FlipStep::AskSiblings(20)));
//!
//! // Nineteen siblings are fine but one: two of 20 turned negative, which is more than 5 %.
//! for _ in 0..18 {
//!     assert_eq!(host.handle_verdict(now, State::Alive, Class::Ok), None);
//! }
//! assert_eq!(host.handle_verdict(now, State::Alive, Class::Negative), Some(FlipStep::Hold));
//! assert!(host.is_held());
//!
//! // Twelve of the 10,000 URLs are to be pruned. The budget of a host with 100 URLs is 10 a day.
//! let mut budget = PruneBudget::default();
//! let pruned = (0..12).filter(|_| budget.take(now, &"host", 100, 10_000).is_ok()).count();
//! assert_eq!(pruned, 10);
//! let tomorrow = now + Duration::from_secs(90_000);
//! assert!(budget.take(tomorrow, &"host", 100, 10_000).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod flip;
mod hold_back;
mod own_network;
mod reach;
mod recent;
mod stops;

pub use budget::{BudgetRules, PruneBudget};
pub use flip::{FlipRules, FlipStep, Hold, HostFlip};
pub use hold_back::HoldBack;
pub use own_network::{LocalSign, OwnNetwork, OwnNetworkRules, Reason, Round, Switch};
pub use reach::Reach;
pub use stops::Stops;

/// A guard that can be on for a URL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Guard {
    /// The own network fails.
    OwnNetwork,
    /// A host turned negative as a whole.
    HostFlip,
}

impl Guard {
    /// The name in metrics and JSON output: `self` or `host`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnNetwork => "self",
            Self::HostFlip => "host",
        }
    }
}
