//! How a host treats HEAD, learned from its answers.

use std::time::Duration;

use super::attempt::{Ask, HeadVerdict};

/// How a host treats HEAD and ranges.
///
/// ```
/// use verdict::{Ask, HeadFacts, HeadFault, HeadVerdict};
///
/// let mut facts = HeadFacts::default();
/// facts.note(HeadVerdict::Refused);
/// assert_eq!((facts.adapt(Ask::Head), facts.is_known()), (Ask::Head, false));
/// facts.note(HeadVerdict::Refused);
/// assert_eq!((facts.adapt(Ask::Head), facts.is_known()), (Ask::FirstByte, true));
/// assert_eq!(facts.fault(), Some(HeadFault::NoHead));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeadFacts {
    fault: Option<HeadFault>,
    /// Verdicts so far; counted up to [`ENOUGH`].
    verdicts: u8,
    refused_in_a_row: u8,
    lies: u8,
    /// How often a host refused a GET of the first byte and not the GET of the whole.
    refused_ranges: u8,
}

/// Why a host is not asked by HEAD.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HeadFault {
    /// HEAD is answered with 405 or 501.
    NoHead,
    /// HEAD is negative where GET is not.
    Lies,
}

/// How long a [`HeadFault`] is believed. Afterwards HEAD is tried again.
pub const HEAD_FACTS_LAST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl HeadFacts {
    /// What an earlier run has learned, not longer than [`HEAD_FACTS_LAST`] ago.
    pub fn learned(fault: HeadFault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    /// Why the host is not asked by HEAD; `None` if HEAD is used.
    pub fn fault(&self) -> Option<HeadFault> {
        self.fault
    }

    /// Whether two HEAD verdicts of the host are known. Until then at most two of its URLs are asked at a time.
    pub fn is_known(&self) -> bool {
        self.fault.is_some() || self.verdicts >= ENOUGH
    }

    /// Whether the host may treat HEAD wrongly: the next verdict will tell.
    pub fn is_suspected(&self) -> bool {
        self.fault.is_none() && (self.refused_in_a_row > 0 || self.lies > 0)
    }

    /// How to ask, if `ask` is wanted.
    pub fn adapt(&self, ask: Ask) -> Ask {
        let no_head = match ask {
            Ask::Head if self.fault.is_some() => Ask::FirstByte,
            ask => ask,
        };
        match no_head {
            Ask::FirstByte if self.refused_ranges >= ENOUGH => Ask::Get,
            ask => ask,
        }
    }

    /// Notes what the requests for a URL say about HEAD.
    pub fn note(&mut self, verdict: HeadVerdict) {
        self.verdicts = self.verdicts.saturating_add(1).min(ENOUGH);
        self.refused_in_a_row = match verdict {
            HeadVerdict::Refused => self.refused_in_a_row.saturating_add(1),
            _ => 0,
        };
        if verdict == HeadVerdict::Lied {
            self.lies = self.lies.saturating_add(1);
        }
        if self.fault.is_none() && self.refused_in_a_row >= ENOUGH {
            self.fault = Some(HeadFault::NoHead);
        } else if self.fault.is_none() && self.lies >= ENOUGH {
            self.fault = Some(HeadFault::Lies);
        }
    }

    /// The host refused a GET of the first byte, and not the GET of the whole.
    pub fn note_range_refused(&mut self) {
        self.refused_ranges = self.refused_ranges.saturating_add(1);
    }
}

/// How often something has to be seen at a host until it is believed.
const ENOUGH: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_after_two_verdicts_and_a_fault_after_two_of_a_kind() {
        use HeadVerdict::*;
        for (verdicts, fault) in [
            (&[Sufficient, Sufficient][..], None),
            (&[Refused, Refused], Some(HeadFault::NoHead)),
            (&[Refused, Sufficient, Refused], None),
            (&[Refused, Lied, Refused], None),
            (&[Lied, Lied], Some(HeadFault::Lies)),
            (&[Lied, Sufficient, Confirmed, Lied], Some(HeadFault::Lies)),
            (&[Confirmed, Unclear], None),
        ] {
            let mut facts = HeadFacts::default();
            assert!(!facts.is_known());
            for verdict in verdicts {
                facts.note(*verdict);
            }
            assert!(facts.is_known());
            assert_eq!(facts.fault(), fault, "{verdicts:?}");
            let first = match fault {
                Some(_) => Ask::FirstByte,
                None => Ask::Head,
            };
            assert_eq!(facts.adapt(Ask::Head), first);
        }
        let learned = HeadFacts::learned(HeadFault::Lies);
        assert!(learned.is_known() && learned.adapt(Ask::Head) == Ask::FirstByte);
    }
}
