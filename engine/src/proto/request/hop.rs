//! Header lines that hold for one send of a request.

use super::{FRAMING, Invalid, check_header, lines, push_line, remove_lines, split_line};
use crate::error::Misuse;

/// Header lines for one send. They are kept apart from those of the caller, which hold for all sends of a call.
#[derive(Default)]
pub(crate) struct HopFields {
    /// Header lines, each with its CRLF.
    pub(super) lines: Vec<u8>,
    invalid: Vec<Invalid>,
}

impl HopFields {
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.invalid.clear();
    }

    /// Adds a line in place of an earlier one with its name.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) {
        Invalid::forget(&mut self.invalid, name);
        if Invalid::note(&mut self.invalid, name, value, check_field_of_send) {
            remove_lines(&mut self.lines, name);
            push_line(&mut self.lines, name, value);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        lines(&self.lines)
            .map(split_line)
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(super) fn check(&self) -> Result<(), Misuse> {
        self.invalid.iter().try_for_each(Invalid::check)
    }
}

fn check_field_of_send(name: &str, value: &[u8]) -> Result<(), Misuse> {
    let mut fixed = FRAMING.iter().copied().chain(FIXED.split(' '));
    match fixed.find(|it| it.eq_ignore_ascii_case(name)) {
        Some(fixed) => Err(Misuse::FixedHeader(fixed)),
        None => check_header(name, value),
    }
}

/// Headers that belong to the whole request or to its connection, in addition to [`FRAMING`].
const FIXED: &str =
    "Host User-Agent Connection Upgrade Accept-Encoding Range Cookie Proxy-Authorization";
