//! What an answer or a failure says about a URL, what a URL's answers over weeks say, and when none of it is believed. Pure:
//! no clock, no network.
//!
//! [`Attempt`] is one attempt at a URL: HEAD first, and every negative answer confirmed by GET. [`HeadFacts`] remembers how
//! a host treats HEAD. An [`Answer`] is what was said last, with its [`Verdict`] and [`Cause`]; a [`Reference`] is a place that
//! names the URL. [`life`] leads a URL from verdict to verdict, and [`guard`] recognises failures that are not its fault.
//!
//! ```
//! use verdict::{Ask, Attempt, Cause, Evidence, HeadFacts, ResponseFacts, Step, Verdict};
//!
//! let facts = HeadFacts::default();
//! let mut attempt = Attempt::new(Ask::Head);
//! assert_eq!(attempt.begin_request(&facts), Ask::Head);
//! // A server that answers HEAD with 404 may still have the page.
//! assert_eq!(attempt.handle(Evidence::Answer(ResponseFacts::of_status(404))), Step::Confirm);
//! assert_eq!(attempt.begin_request(&facts), Ask::FirstByte);
//! assert_eq!(attempt.handle(Evidence::Answer(ResponseFacts::of_status(206))), Step::Judged(Verdict::Ok));
//!
//! // A timeout ends the attempt; the next attempt uses GET.
//! let mut attempt = Attempt::new(Ask::Head);
//! attempt.begin_request(&facts);
//! let timeout = Evidence::Failure(Cause::FirstByteTimeout);
//! assert_eq!(attempt.handle(timeout), Step::Failed(Cause::FirstByteTimeout));
//! attempt.begin_again();
//! assert_eq!(attempt.begin_request(&facts), Ask::FirstByte);
//! ```

mod answer;
mod attempt;
mod cause;
pub mod guard;
mod head_facts;
pub mod life;
mod reference;

pub use answer::Answer;
pub use attempt::{Ask, Attempt, Evidence, HeadVerdict, MOST_REQUESTS, ResponseFacts, Step};
pub use cause::{Cause, Class, Verdict};
pub use head_facts::{HEAD_FACTS_LAST, HeadFacts, HeadFault};
pub use reference::Reference;
