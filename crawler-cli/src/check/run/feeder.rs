//! Between the sources and the keeper: makes links of what sources refer to, for a store in a thread of its own.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};

use crate::check::record::Reference;
use crate::check::sources::{self, Batch, Batches, Next, Problem};
use crate::store::{Demand, Link, Target};

/// A part of what the sources say.
#[derive(Debug)]
pub(super) struct Fed {
    pub(super) links: Vec<Link>,
    pub(super) problems: Vec<Problem>,
    /// Links with schemes that are not checked.
    pub(super) unsupported: u64,
    /// Links that the selection left out.
    pub(super) excluded: u64,
}

/// Starts the thread. It ends with the sources, or when the receiver is dropped.
pub(super) fn feed(mut batches: Batches) -> Receiver<Fed> {
    let (sender, receiver) = bounded(FED);
    thread::spawn(move || {
        loop {
            let fed = match batches.next(LONGEST_WAIT) {
                Next::Batch(batch) => fed(batch),
                // Nothing to add: finds out whether the receiver is still there.
                Next::Nothing => fed(Batch::default()),
                Next::End => return,
            };
            if sender.send(fed).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The links of a batch.
pub(super) fn fed(batch: Batch) -> Fed {
    let demand = Demand {
        given: true,
        private: true,
        links: false,
        depth: 0,
    };
    let page = batch.page.map(|(spelling, url)| Link {
        target: Target::Ask(
            url,
            Demand {
                links: true,
                ..demand
            },
        ),
        reference: Reference {
            source: (*spelling).into(),
            line: None,
            column: None,
            written: None,
            text: String::new(),
        },
        spelling,
        is_in_page: false,
    });
    let occurrences = batch.occurrences.into_iter().map(|occurrence| Link {
        target: match occurrence.target {
            sources::Target::Ask(url) => Target::Ask(url, demand),
            sources::Target::Local(verdict, detail) => Target::Local(verdict, detail),
        },
        spelling: occurrence.spelling,
        reference: occurrence.reference,
        is_in_page: false,
    });
    Fed {
        links: page.into_iter().chain(occurrences).collect(),
        problems: batch.problems,
        unsupported: batch.unsupported,
        excluded: batch.excluded,
    }
}

/// Batches that wait for the keeper.
const FED: usize = 4;

/// The longest time until the thread notices that nobody listens any more.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
