//! Between the sources and the keeper: makes links of what sources refer to.

use crate::sources::{self, Batch, Problem};
use store::{Demand, Link, Target};
use verdict::Reference;

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
