//! Content codings of a response (RFC 9110 §8.4), decoded between the framing and the body: gzip and deflate (RFC
//! 1950-1952), br (RFC 7932), zstd (RFC 8878, RFC 9659), and up to five of them applied one after the other. Bytes in,
//! bytes out.
//!
//! A [`Decoder`] works in pieces of bounded size and counts the output of each layer, so that no input gets far beyond
//! a limit. It stops when the body is as long as its consumer allows, and keeps the rest of the input until the body
//! has room. The exchange decides whether a response is decoded.
//!
//! The codings are in files of their own, so that each can be left out of a build. Libraries (`flate2`,
//! `brotli_decompressor`, `zstd`) decode the compressed data; the files parse the framing of gzip and deflate, and decide
//! what may follow the end of a coding.
//!
//! | coding | may follow its end |
//! |---|---|
//! | gzip | further members, then zeros (padding, as from tapes and gzip(1)); anything else is an error |
//! | deflate, br | nothing |
//! | zstd | further frames, skippable frames included |

#[cfg(feature = "brotli")]
mod brotli;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(test)]
mod tests;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt;
use std::ops::{BitOr, Range};

use super::Limits;
use super::head::list;
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// A set of content codings: those that a request offers in `Accept-Encoding`, and that are decoded in its response.
///
/// A response keeps the memory that decoding has needed, and a client keeps that of streamed bodies (up to 1 MiB for
/// each), so the next body costs no allocation. A body in `br` does cost allocations: its decoder cannot be used again.
///
/// ```
/// use courser::{Codings, Request};
///
/// let mut request = Request::get("/");
/// request.decode(Codings::GZIP | Codings::ZSTD);
/// assert_eq!((Codings::GZIP | Codings::ZSTD).to_string(), "gzip, zstd");
/// assert!(Codings::all().contains(Codings::BR) && Codings::none().is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Codings(u8);

impl Codings {
    /// `gzip` (RFC 1952). A response may also call it `x-gzip`.
    #[cfg(feature = "gzip")]
    pub const GZIP: Self = Self(1);
    /// `deflate`: zlib's format (RFC 1950), or bare deflate (RFC 1951), which some servers send.
    #[cfg(feature = "gzip")]
    pub const DEFLATE: Self = Self(2);
    /// `br` (RFC 7932).
    #[cfg(feature = "brotli")]
    pub const BR: Self = Self(4);
    /// `zstd` (RFC 8878).
    #[cfg(feature = "zstd")]
    pub const ZSTD: Self = Self(8);

    /// All codings that the features of this build contain.
    pub const fn all() -> Self {
        let gzip = if cfg!(feature = "gzip") { 1 | 2 } else { 0 };
        let brotli = if cfg!(feature = "brotli") { 4 } else { 0 };
        let zstd = if cfg!(feature = "zstd") { 8 } else { 0 };
        Self(gzip | brotli | zstd)
    }

    /// No coding: bodies are delivered as they were sent.
    pub const fn none() -> Self {
        Self(0)
    }

    /// Whether all codings in `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Codings {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Codings {
    /// The value of an `Accept-Encoding` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (coding, name, _) in CODINGS {
            if self.contains(*coding) {
                write!(f, "{between}{name}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}

/// A content coding: its set, its name, and how a decoder for it is made.
pub(super) type Coding = (Codings, &'static str, NewDecoder);
type NewDecoder = fn() -> Result<Box<dyn CodingDecoder>, ErrorKind>;

static CODINGS: &[Coding] = &[
    #[cfg(feature = "gzip")]
    (Codings::GZIP, "gzip", gzip::Gzip::begin),
    #[cfg(feature = "gzip")]
    (Codings::DEFLATE, "deflate", gzip::Deflate::begin),
    #[cfg(feature = "brotli")]
    (Codings::BR, "br", brotli::Br::begin),
    #[cfg(feature = "zstd")]
    (Codings::ZSTD, "zstd", zstd::Zstd::begin),
];

fn parse(token: &[u8]) -> Option<&'static Coding> {
    // RFC 9110 §8.4.1.3
    let is_gzip = token.eq_ignore_ascii_case(b"x-gzip");
    let token = if is_gzip { b"gzip" } else { token };
    let is_named = |(_, name, _): &&Coding| token.eq_ignore_ascii_case(name.as_bytes());
    CODINGS.iter().find(is_named)
}

/// The codings of a body in the order in which they were applied; the rest is `None`.
pub(super) type Stack = [Option<&'static Coding>; MAX_CODINGS];

/// Reads the values of all `Content-Encoding` lines. The result is empty if one of the codings is unknown or not in
/// `wanted`: the codings applied before that one cannot be decoded without it.
pub(super) fn stack<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    wanted: Codings,
) -> Result<Stack, LimitExceeded> {
    let (mut stack, mut depth) = ([None; MAX_CODINGS], 0);
    let tokens = values.flat_map(list);
    for token in tokens.filter(|t| !t.is_empty() && !t.eq_ignore_ascii_case(b"identity")) {
        match parse(token) {
            Some(coding) if wanted.contains(coding.0) => {
                if let Some(slot) = stack.get_mut(depth) {
                    *slot = Some(coding);
                }
                depth += 1;
            }
            _ => return Ok([None; MAX_CODINGS]),
        }
    }
    if depth > MAX_CODINGS {
        return Err(LimitExceeded::ContentCodings(MAX_CODINGS));
    }
    Ok(stack)
}

/// Decodes the content codings of one body after the other. Keeps its memory between bodies.
#[derive(Default)]
pub(crate) struct Decoder {
    /// In the order in which bytes pass them: the coding that was applied last comes first.
    layers: Vec<Layer>,
    /// Layers of earlier bodies, ready for a new one.
    spare: Vec<Layer>,
    /// Input that came while the body was full. Empty unless `held`.
    kept: Vec<u8>,
    /// Decoding has stopped because the body was full, and can continue without new input.
    held: bool,
    /// Bytes of the coded body that the first layer has used.
    taken: u64,
    /// Bytes of memory that the spare layers hold.
    idle_memory: usize,
}

struct Layer {
    coding: &'static Coding,
    decoder: Box<dyn CodingDecoder>,
    out: Box<[u8]>,
    /// The part of `out` that the next layer has not used yet; always empty for the last layer.
    ready: Range<usize>,
    made: u64,
    /// The last step did not fill the output: without new input, the layer has no more.
    drained: bool,
}

/// Where the decoded bytes of one body go, and their limits.
pub(super) struct Decoded<'a> {
    pub(super) body: &'a mut Vec<u8>,
    pub(super) limits: &'a Limits,
    /// Bytes that each layer may produce.
    pub(super) most: Option<u64>,
    /// The length at which the body counts as full.
    pub(super) hold_at: usize,
}

/// How much a layer used and produced in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    used: usize,
    made: usize,
}

/// A decoder for one content coding.
pub(super) trait CodingDecoder: Send + Sync {
    /// Sets the limits that hold inside a coding.
    fn prepare(&mut self, _limits: &Limits) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// Uses some input, or none, and produces some output. If there is room left in `out`, the coding has no more
    /// output without more input.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Progress, ErrorKind>;

    /// Whether the input may end here.
    fn is_complete(&self) -> bool;

    /// Prepares for another body. Returns false if a new decoder costs as little.
    fn reset(&mut self) -> bool;

    /// Bytes of memory that the decoder holds, about.
    fn memory(&self) -> usize;
}

impl Decoder {
    /// Prepares for a new body with the codings in `stack`.
    pub(super) fn begin(&mut self, stack: Stack, limits: &Limits) -> Result<(), ErrorKind> {
        for coding in stack.into_iter().rev().flatten() {
            let at = self.spare.iter().position(|l| l.coding.0 == coding.0);
            let mut layer = match at {
                Some(at) => self.spare.swap_remove(at),
                None => Layer {
                    coding,
                    decoder: coding.2()?,
                    out: vec![0; PIECE].into_boxed_slice(),
                    ready: 0..0,
                    made: 0,
                    drained: true,
                },
            };
            layer.decoder.prepare(limits)?;
            self.layers.push(layer);
        }
        Ok(())
    }

    /// Decodes the next piece of the coded body, and keeps what the body has no room for.
    pub(super) fn handle_input(
        &mut self,
        input: &[u8],
        to: &mut Decoded<'_>,
    ) -> Result<(), ErrorKind> {
        let used = match self.held {
            true => 0,
            false => self.decode(input, to)?,
        };
        self.kept.extend_from_slice(&input[used..]);
        Ok(())
    }

    /// Continues to decode: the body has room again.
    pub(super) fn handle_room(&mut self, to: &mut Decoded<'_>) -> Result<(), ErrorKind> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.drain(..self.decode(&kept, to)?);
        self.kept = kept;
        Ok(())
    }

    /// Whether decoding has stopped because the body is full.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Bytes of the coded body that have come.
    pub(super) fn received(&self) -> u64 {
        self.taken + self.kept.len() as u64
    }

    /// Whether every layer has reached the end of its coding.
    pub(super) fn is_complete(&self) -> bool {
        self.layers.iter().all(|layer| layer.decoder.is_complete())
    }

    /// Ends the body. Frees layers that are not worth keeping, and those above `retained` bytes in all.
    pub(super) fn reset(&mut self, retained: usize) {
        (self.kept, self.held, self.taken) = (Vec::new(), false, 0);
        let mut layers = std::mem::take(&mut self.layers);
        self.spare.extend(layers.drain(..).filter_map(Layer::reset));
        self.layers = layers;
        self.idle_memory = 0;
        self.spare.retain(|layer| {
            let memory = layer.decoder.memory() + layer.out.len();
            let keep = self.idle_memory + memory <= retained;
            self.idle_memory += if keep { memory } else { 0 };
            keep
        });
    }

    /// Bytes of memory that the decoder holds between two bodies.
    pub(crate) fn idle_memory(&self) -> usize {
        self.idle_memory
    }

    /// Decodes until the input is used up or the body is full. Returns how much of the input was used.
    fn decode(&mut self, input: &[u8], to: &mut Decoded<'_>) -> Result<usize, ErrorKind> {
        let mut left = input;
        self.held = false;
        loop {
            let mut progressed = false;
            // The last layer first: each one makes room for the one before it.
            for at in (0..self.layers.len()).rev() {
                progressed |= self.step(at, &mut left, to)?;
            }
            if !progressed {
                return Ok(input.len() - left.len());
            }
        }
    }

    /// Lets one layer do one step. Returns false if the layer had nothing to do.
    fn step(
        &mut self,
        at: usize,
        input: &mut &[u8],
        to: &mut Decoded<'_>,
    ) -> Result<bool, ErrorKind> {
        let (before, rest) = self.layers.split_at_mut(at);
        let [layer, after @ ..] = rest else {
            return Ok(false);
        };
        let source = match before.last() {
            Some(before) => &before.out[before.ready.clone()],
            None => input,
        };
        if !layer.ready.is_empty() || (source.is_empty() && layer.drained) {
            return Ok(false);
        }
        let room = match after {
            [] => to.hold_at.saturating_sub(to.body.len()).min(PIECE),
            _ => PIECE,
        };
        if room == 0 {
            self.held = true;
            return Ok(false);
        }
        let step = layer.decoder.step(source, &mut layer.out[..room])?;
        if step.used == 0 && step.made == 0 && !source.is_empty() {
            return Err(PeerFault::BadContentCoding.into());
        }
        layer.drained = step.made < room;
        layer.made += step.made as u64;
        match before.last_mut() {
            Some(before) => before.ready.start += step.used,
            None => {
                *input = &input[step.used..];
                self.taken += step.used as u64;
            }
        }
        let over = to.most.map_or(0, |most| layer.made.saturating_sub(most));
        if after.is_empty() {
            let within = step.made - step.made.min(usize::try_from(over).unwrap_or(usize::MAX));
            to.body.extend_from_slice(&layer.out[..within]);
        } else {
            layer.ready = 0..step.made;
        }
        if over > 0 {
            return Err(LimitExceeded::DecodedBytes(layer.made - over).into());
        }
        if let Some(ratio) = to.limits.decode_ratio
            && layer.made > RATIO_FROM
            && layer.made / u64::from(ratio.max(1)) > self.taken
        {
            return Err(LimitExceeded::DecodeRatio(ratio).into());
        }
        if !after.is_empty()
            && layer.made > BETWEEN_FROM.max(self.taken.saturating_mul(BETWEEN_RATIO))
        {
            return Err(LimitExceeded::DecodeRatio(BETWEEN_RATIO as u32).into());
        }
        Ok(step.used > 0 || step.made > 0)
    }
}

impl Layer {
    /// Prepares the layer for another body; `None` if its memory is not worth keeping.
    fn reset(mut self) -> Option<Self> {
        (self.ready, self.made, self.drained) = (0..0, 0, true);
        self.decoder.reset().then_some(self)
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codings = self.layers.iter().map(|layer| layer.coding.1);
        f.debug_list().entries(codings).finish()
    }
}

/// The most codings that are decoded in one body. More than two are of no use, and each can multiply the work.
const MAX_CODINGS: usize = 5;

/// Bytes that a layer produces at a time. As much as deflate can refer back to, so that zlib copies as little as
/// possible.
const PIECE: usize = 32 * 1024;

/// How many times as long as the coded body the data between two codings may be. This data is compressed, so that it can
/// hardly be compressed a second time. Data that can may be made to be slow to decode: millions of empty blocks.
const BETWEEN_RATIO: u64 = 16;

/// That ratio is checked only above so many bytes.
const BETWEEN_FROM: u64 = 256 * 1024;

/// The ratio is checked only above so many decoded bytes: a small body does no harm.
const RATIO_FROM: u64 = 1024 * 1024;
