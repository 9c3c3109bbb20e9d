//! A page that arrives in pieces. Markup is given when it is complete, so that the stream is the one of the whole page, and
//! the memory is that of the longest markup.

use super::{Context, Raw, Sink, Tokeniser, is_xml};

/// A page of which a part has arrived.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// What is not given yet.
    buffer: Vec<u8>,
    /// Known from the beginning of the page.
    is_xml: Option<bool>,
    foreign: u32,
    /// With less in the buffer, nothing new can be complete.
    enough: usize,
}

/// Markup is longer than [`LONGEST`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooLong;

impl Incoming {
    pub(crate) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            is_xml: None,
            foreign: 0,
            enough: BEGINNING,
        }
    }

    /// Takes the next piece, and gives what is complete.
    ///
    /// # Errors
    /// Something is not complete after very many bytes. Nothing more can be read.
    pub(crate) fn feed<S: for<'d> Sink<'d>>(
        &mut self,
        piece: &[u8],
        sink: &mut S,
    ) -> Result<(), TooLong> {
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() < self.enough {
            return Ok(());
        }
        let given = self.give(sink);
        self.buffer.drain(..given);
        // A long script is not read again with each piece.
        self.enough = self.buffer.len() * 2;
        match self.buffer.len() > LONGEST {
            true => Err(TooLong),
            false => Ok(()),
        }
    }

    /// The page has ended: gives the rest.
    pub(crate) fn finish<S: for<'d> Sink<'d>>(self, sink: &mut S) {
        let mut tokeniser = Tokeniser {
            page: &self.buffer,
            at: 0,
            is_xml: self.is_xml.unwrap_or_else(|| is_xml(&self.buffer)),
            foreign: self.foreign,
        };
        tokeniser.read(sink);
    }

    /// Gives what is complete. Returns its length.
    fn give<S: for<'d> Sink<'d>>(&mut self, sink: &mut S) -> usize {
        let page = self.buffer.as_slice();
        let mut tokeniser = Tokeniser {
            page,
            at: 0,
            is_xml: *self.is_xml.get_or_insert_with(|| is_xml(page)),
            foreign: self.foreign,
        };
        while !sink.is_done() {
            let at = tokeniser.at;
            let Some(next) = tokeniser.next_markup(at) else {
                // The end of the text may be the beginning of a reference or of markup.
                let end = text_end(&page[at..]).map_or(at, |length| at + length);
                tokeniser.give_text(at..end, Some(Context::Text), sink);
                tokeniser.at = end;
                break;
            };
            let mut ahead = Tokeniser {
                at: next,
                ..tokeniser
            };
            // What the end of the piece ends may go on in the next one.
            if ahead.markup(&mut Nothing).is_none() || ahead.at >= page.len() {
                break;
            }
            tokeniser.give_text(at..next, Some(Context::Text), sink);
            tokeniser.at = next;
            tokeniser.markup(sink);
        }
        self.foreign = tokeniser.foreign;
        tokeniser.at
    }
}

/// How much of a long text can be given before its end is known.
fn text_end(text: &[u8]) -> Option<usize> {
    let most = text.len().checked_sub(KEPT_TEXT)?;
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\n');
    Some(text[..most].iter().rposition(is_between)? + 1)
}

/// Reads to find where something ends.
struct Nothing;

impl<'d> Sink<'d> for Nothing {
    fn open(&mut self, _: &[u8]) {}

    fn attribute(&mut self, _: &[u8], _: Raw<'d>) {}

    fn opened(&mut self) {}

    fn is_done(&self) -> bool {
        false
    }
}

/// Within so many bytes, a page of XML says so.
const BEGINNING: usize = 64;

/// So much of a text is kept until its end is known.
const KEPT_TEXT: usize = 16 * 1024;

/// The longest markup, such as a script.
const LONGEST: usize = 16 << 20;
