//! The history of a URL, as a strip.

use jiff::Timestamp;
use maud::{Markup, html};

use super::pieces::{class, state};
use crate::check::life::State;
use crate::store::UrlDetail;
use crate::watch::hands::strip::{known, pieces};
use crate::watch::hands::words::stamp;

/// Each piece has the worst state of its time, so that a short failure is seen.
pub(super) fn strip(detail: &UrlDetail, now: Timestamp) -> Markup {
    let (from, steps) = known(detail);
    let states = pieces(from, now, &steps, detail.url.life.state(), PIECES);
    let there = State::ALL
        .into_iter()
        .filter(|state| states.contains(state));
    let there: Vec<State> = there.collect();
    let names: Vec<&str> = there.iter().map(|state| state.name()).collect();
    let label = format!(
        "History from {} until now: {}",
        stamp(from),
        names.join(", ")
    );
    html! {
        svg.strip viewBox={ "0 0 " (PIECES * WIDTH) " 40" } preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (piece, state) in states.iter().enumerate() {
                rect class=(class(*state)) x=(piece * WIDTH) y="0" width=(WIDTH - 2) height="40" rx="2" {}
            }
        }
        div.ends { span { (stamp(from)) } span { "now" } }
        p.legend { @for there in there { (state(there)) " " } }
    }
}

/// In how many pieces the time is divided.
const PIECES: usize = 120;
/// The width of a piece.
const WIDTH: usize = 8;
