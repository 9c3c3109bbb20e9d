//! A URL's life: what its verdicts over weeks make of it, and when it is asked again. Pure: time and random numbers are
//! arguments.
//!
//! ```text
//! NEW ─ok→ ALIVE ─neg/soft→ SUSPECT ─report rule→ BROKEN ─gone rule→ GONE ─grace, budget→ PRUNED
//!  │net      │ ▲              │ok                 │ok                │2 × ok ≥ 1 h apart   │ same
//!  └─────► UNREACHABLE ─ok→ ALIVE ◄───────────────┴──────────────────┴──── event `resurrected`
//! ```
//!
//! - Only negative verdicts (404, 410, a missing name) lead to GONE, and only what is gone can be pruned.
//! - One good verdict clears everything short of GONE.
//! - While a guard is on, what is suspect or broken is QUARANTINED and nothing ages.
//! - Verdicts that say nothing about the resource keep the state and set a [`Flag`].
//!
//! The rules, with their counts, spans and intervals, are [`Rules`]; a [`Profile`] names a set of them. The caller keeps a
//! [`Record`] for each URL and a [`Cleared`] for each host.
//!
//! ```
//! use verdict::life::{Context, Profile, Record, State};
//! use verdict::{Cause, Verdict};
//! use plain::random::Random;
//! use jiff::{SignedDuration, Timestamp};
//!
//! let rules = Profile::Default.rules();
//! let mut random = Random::new(7);
//! let mut record = Record::default();
//! let context = Context { is_control_fine: true, ..Context::default() };
//!
//! // Good, and then 410 whenever the URL is asked again.
//! let mut now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
//! let alive = rules.decide(now, &mut record, (Verdict::Ok, Some(200)), &context, &mut random);
//! now = alive.due;
//! let mut states = vec![record.state()];
//! while record.state() != State::Gone {
//!     let gone = (Verdict::Failed(Cause::Status410), Some(410));
//!     let decision = rules.decide(now, &mut record, gone, &context, &mut random);
//!     states.extend(decision.transition.map(|transition| transition.to));
//!     now = decision.due;
//! }
//! assert_eq!(states, [State::Alive, State::Suspect, State::Broken, State::Gone]);
//! assert!(record.negatives() >= 4);
//! assert!(now.duration_since(alive.due) >= SignedDuration::from_hours(48));
//!
//! // The store keeps a record as a few bytes.
//! assert_eq!(Record::from_bytes(&record.to_bytes())?, record);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cleared;
mod decide;
mod evidence;
mod record;
mod rules;
mod schedule;
mod states;
pub mod time;

pub use cleared::Cleared;
pub use decide::{Context, Decision, Held};
pub use evidence::{Negative, Negatives};
pub use record::{Answer, Answers, Record, RecordError};
pub use rules::{Flapping, GoneRule, Profile, Resurrect, Rules};
pub use schedule::{Intervals, Ladder, Reconcile};
pub use states::{Flag, PruneWait, State, Transition, Why, event_of};

#[cfg(test)]
mod tests;
