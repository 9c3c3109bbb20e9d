//! Results as JSON: one object for each URL, on a line of its own, and a further one that says `again` for places that were
//! found later or that spell the URL in another way. A field that is not known is absent.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

use super::{Checked, reason};
use plain::redirect::Redirect;
use plain::terminal::push_json_string;
use verdict::Reference;
use verdict::life::State;

/// Appends the line of a URL.
pub fn write(checked: &Checked, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    result(checked, &mut fields);
    fields.close();
    out.push(b'\n');
}

/// The fields of a URL that was checked.
pub fn result(checked: &Checked, fields: &mut Fields<'_>) {
    fields.text("url", &checked.url);
    if checked.before.is_some() {
        fields.number("again", true);
    }
    fields.text("class", checked.answer.verdict.class().name());
    let cause = checked.answer.verdict.cause().map(|cause| cause.name());
    fields.some("cause", cause.as_deref(), Fields::text);
    if checked.is_late() {
        fields.some("status", checked.answer.status, Fields::number);
        return fields.list("refs", &checked.references, reference);
    }
    let reason = reason::reason(checked);
    fields.some("reason", reason.as_deref(), Fields::text);
    fields.some("status", checked.answer.status, Fields::number);
    fields.some("method", checked.answer.method, Fields::text);
    fields.some("lenient", checked.lenient(), Fields::text);
    fields.some("state", checked.state.map(State::name), Fields::text);
    fields.some("moved_to", checked.answer.moved_to.as_deref(), Fields::text);
    fields.some(
        "final_url",
        checked.answer.final_url.as_deref(),
        Fields::text,
    );
    fields.list("redirects", &checked.answer.redirects, redirect);
    fields.number("attempts", checked.answer.attempts);
    let latency = checked.answer.latency.map(Millis);
    fields.some("latency_ms", latency, Fields::number);
    fields.some("address", checked.answer.address, Fields::address);
    let checked_at = checked.answer.checked_at.map(rfc3339);
    fields.some("checked_at", checked_at, Fields::quoted);
    fields.list("refs", &checked.references, reference);
}

fn redirect(redirect: &Redirect, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    fields.number("status", redirect.status);
    fields.text("url", &redirect.url);
    fields.close();
}

fn reference(reference: &Reference, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    fields.text("source", &reference.source);
    fields.some("line", reference.line, Fields::number);
    fields.some("column", reference.column, Fields::number);
    fields.some("written", reference.written.as_deref(), Fields::text);
    fields.text("text", &reference.text);
    fields.close();
}

/// The fields of one object. No tree of values is built: a run may write millions of lines.
pub struct Fields<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Fields<'o> {
    /// Begins an object.
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    fn name(&mut self, name: &str) {
        self.out
            .extend_from_slice(if self.is_empty { b"\"" } else { b",\"" });
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.is_empty = false;
    }

    /// A text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_json_string(self.out, text);
    }

    /// A value whose text needs no escapes, in quotes.
    pub fn quoted(&mut self, name: &str, value: impl std::fmt::Display) {
        self.name(name);
        // Writing to memory does not fail.
        let _ = write!(self.out, "\"{value}\"");
    }

    /// An address. The general way to print a number takes longer than all else in a line.
    fn address(&mut self, name: &str, address: IpAddr) {
        let IpAddr::V4(address) = address else {
            return self.quoted(name, address);
        };
        self.name(name);
        for (index, octet) in address.octets().into_iter().enumerate() {
            self.out.push(if index == 0 { b'"' } else { b'.' });
            let digits = [octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit);
            let zeros = digits[..2]
                .iter()
                .take_while(|digit| **digit == b'0')
                .count();
            self.out.extend_from_slice(&digits[zeros..]);
        }
        self.out.push(b'"');
    }

    /// A number, `true` or `false`.
    pub fn number(&mut self, name: &str, number: impl std::fmt::Display) {
        self.name(name);
        let _ = write!(self.out, "{number}");
    }

    /// A value that `write` writes, or `null`.
    pub fn known<T>(
        &mut self,
        name: &str,
        value: Option<T>,
        write: impl FnOnce(&mut Self, &str, T),
    ) {
        match value {
            Some(value) => write(self, name, value),
            None => self.number(name, "null"),
        }
    }

    /// A value that `write` writes; a field that is not known is absent.
    fn some<T>(&mut self, name: &str, value: Option<T>, write: impl FnOnce(&mut Self, &str, T)) {
        if let Some(value) = value {
            write(self, name, value);
        }
    }

    /// A list.
    pub fn list<T>(&mut self, name: &str, items: &[T], write: fn(&T, &mut Vec<u8>)) {
        self.name(name);
        self.out.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            write(item, self.out);
        }
        self.out.push(b']');
    }

    /// Ends the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// A time span in milliseconds, with microseconds as the fraction.
pub(crate) struct Millis(pub(crate) Duration);

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = self.0.as_micros();
        let (whole, rest) = (micros / 1000, micros % 1000);
        write!(f, "{whole}")?;
        if rest == 0 {
            return Ok(());
        }
        f.write_char('.')?;
        f.write_str(format!("{rest:03}").trim_end_matches('0'))
    }
}

/// A time in RFC 3339, to the millisecond.
pub fn rfc3339(at: Timestamp) -> String {
    let mut text = String::with_capacity(24);
    let printer = DateTimePrinter::new().precision(Some(3));
    // Writing to a string does not fail.
    let _ = printer.print_timestamp(&at, &mut text);
    text
}
