//! Content codings of a response (RFC 9110 §8.4), taken off between the framing and the body: gzip and deflate
//! (RFC 1950-1952), br (RFC 7932), zstd (RFC 8878, RFC 9659), one upon the other up to five deep. Bytes in, bytes out.
//!
//! A [`Decoder`] works in pieces of bounded size and counts what each layer makes, so that no input gets far beyond a
//! limit, and stops when the body holds as much as its consumer wants; what is left of its input it keeps until then.
//! What the codings themselves are is in [`layer`]; when a response is decoded at all is the exchange's matter.

mod layer;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{BitOr, Range};

use self::layer::Engine;
use super::Limits;
use super::head::list;
use crate::error::{ErrorKind, LimitExceeded, PeerFault};

/// A set of content codings: those that a request offers in `Accept-Encoding` and wants taken off its response.
///
/// A response keeps what decoding has needed, and a client what streamed bodies have needed (up to a MiB for each): the
/// next body costs no allocation. Those in `br` do: its decoder cannot be used again.
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
    /// `gzip`, also listed as `x-gzip` (RFC 1952).
    pub const GZIP: Self = Self(1);
    /// `deflate`: zlib's format (RFC 1950), or, as some servers send it, bare deflate (RFC 1951).
    pub const DEFLATE: Self = Self(2);
    /// `br` (RFC 7932).
    pub const BR: Self = Self(4);
    /// `zstd` (RFC 8878).
    pub const ZSTD: Self = Self(8);

    /// All of them.
    pub const fn all() -> Self {
        Self(15)
    }

    /// None of them: bodies come as they were sent.
    pub const fn none() -> Self {
        Self(0)
    }

    /// Whether all of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none in it.
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
    /// As a header's value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for coding in Coding::ALL {
            if self.contains(coding.set()) {
                write!(f, "{between}{}", coding.name())?;
                between = ", ";
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Br,
    Zstd,
}

impl Coding {
    const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Br, Self::Zstd];

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Br => "br",
            Self::Zstd => "zstd",
        }
    }

    fn set(self) -> Codings {
        match self {
            Self::Gzip => Codings::GZIP,
            Self::Deflate => Codings::DEFLATE,
            Self::Br => Codings::BR,
            Self::Zstd => Codings::ZSTD,
        }
    }

    fn parse(token: &[u8]) -> Option<Self> {
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip); // RFC 9110 §8.4.1.3
        }
        let named = |coding: &Self| token.eq_ignore_ascii_case(coding.name().as_bytes());
        Self::ALL.into_iter().find(named)
    }
}

/// The codings of a body in the order in which they were applied; the rest is `None`.
pub(super) type Stack = [Option<Coding>; MOST_CODINGS];

/// What the values of all `Content-Encoding` lines come to. Nothing is to be decoded if one of the codings is unknown
/// or not wanted: the layers below it would be of no use by themselves.
pub(super) fn stack<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    wanted: Codings,
) -> Result<Stack, LimitExceeded> {
    let (mut stack, mut depth) = ([None; MOST_CODINGS], 0);
    let tokens = values.flat_map(list);
    for token in tokens.filter(|t| !t.is_empty() && !t.eq_ignore_ascii_case(b"identity")) {
        match Coding::parse(token) {
            Some(coding) if wanted.contains(coding.set()) => {
                if let Some(slot) = stack.get_mut(depth) {
                    *slot = Some(coding);
                }
                depth += 1;
            }
            _ => return Ok([None; MOST_CODINGS]),
        }
    }
    if depth > MOST_CODINGS {
        return Err(LimitExceeded::ContentCodings(MOST_CODINGS));
    }
    Ok(stack)
}

/// Takes the codings off one body after the other, and keeps its memory in between.
pub(crate) struct Decoder {
    /// In the order in which bytes pass them: the coding that was applied last comes first.
    layers: Vec<Layer>,
    /// Layers of earlier bodies, ready for a new one.
    spare: Vec<Layer>,
    /// Input that came while the body was full, from `kept_at` on. Empty unless `held`.
    kept: Vec<u8>,
    kept_at: usize,
    /// It has stopped because the body was full, and there is more to come without new input.
    held: bool,
    /// Bytes of the coded body that have come.
    received: u64,
    /// Those of them that the first layer has taken.
    taken: u64,
    /// What the spare layers hold in memory.
    idle_memory: usize,
}

struct Layer {
    engine: Engine,
    out: Box<[u8]>,
    /// What of `out` the next layer has still to take; always empty for the last one.
    ready: Range<usize>,
    made: u64,
    /// The last step left room: without new input there is no more.
    drained: bool,
}

/// What holds for one body.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) limits: &'a Limits,
    /// Of all that a layer makes.
    pub(super) decoded: Option<u64>,
    /// As much as the body may hold at a time.
    pub(super) hold_at: usize,
}

/// What a layer did with its input.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    used: usize,
    made: usize,
}

impl Decoder {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            layers: Vec::new(),
            spare: Vec::new(),
            kept: Vec::new(),
            kept_at: 0,
            held: false,
            received: 0,
            taken: 0,
            idle_memory: 0,
        })
    }

    /// Prepares for a new body.
    pub(super) fn begin(&mut self, stack: Stack, limits: &Limits) -> Result<(), ErrorKind> {
        for coding in stack.into_iter().rev().flatten() {
            let at = self.spare.iter().position(|l| l.engine.coding() == coding);
            let mut layer = match at {
                Some(at) => self.spare.swap_remove(at),
                None => Layer {
                    engine: Engine::new(coding)?,
                    out: vec![0; PIECE].into_boxed_slice(),
                    ready: 0..0,
                    made: 0,
                    drained: true,
                },
            };
            layer.engine.prepare(limits)?;
            self.layers.push(layer);
        }
        Ok(())
    }

    /// Takes in the next piece of the coded body.
    pub(super) fn handle_input(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        bounds: Bounds<'_>,
    ) -> Result<(), ErrorKind> {
        self.received += input.len() as u64;
        let used = if self.held {
            0
        } else {
            self.decode(input, body, bounds)?
        };
        self.kept.extend_from_slice(&input[used..]);
        Ok(())
    }

    /// The body has room again.
    pub(super) fn handle_room(
        &mut self,
        body: &mut Vec<u8>,
        bounds: Bounds<'_>,
    ) -> Result<(), ErrorKind> {
        let mut kept = std::mem::take(&mut self.kept);
        self.kept_at += self.decode(&kept[self.kept_at..], body, bounds)?;
        if self.kept_at == kept.len() {
            kept.clear();
            self.kept_at = 0;
        }
        self.kept = kept;
        Ok(())
    }

    /// Whether there is more to come once the body has room.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Bytes of the coded body that have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Whether every layer has seen its end.
    pub(super) fn is_complete(&self) -> bool {
        self.layers.iter().all(|layer| layer.engine.is_complete())
    }

    /// Ends the body, and gives back what is not worth keeping, or above `retained` bytes in all.
    pub(super) fn reset(&mut self, retained: usize) {
        (self.kept, self.kept_at, self.held) = (Vec::new(), 0, false);
        (self.received, self.taken) = (0, 0);
        let mut layers = std::mem::take(&mut self.layers);
        self.spare.extend(layers.drain(..).filter_map(Layer::reset));
        self.layers = layers;
        self.idle_memory = 0;
        self.spare.retain(|layer| {
            let memory = layer.engine.memory() + layer.out.len();
            let keep = self.idle_memory + memory <= retained;
            self.idle_memory += if keep { memory } else { 0 };
            keep
        });
    }

    /// What it holds in memory between two bodies, in bytes.
    pub(crate) fn idle_memory(&self) -> usize {
        self.idle_memory
    }

    /// Decodes until the input is used up or the body is full, and tells how much of the input was used.
    fn decode(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        bounds: Bounds<'_>,
    ) -> Result<usize, ErrorKind> {
        let mut used = 0;
        self.held = false;
        loop {
            let mut moved = false;
            // The last layer first: each one makes room for the one before it.
            for at in (0..self.layers.len()).rev() {
                moved |= self.step(at, input, &mut used, body, bounds)?;
            }
            if !moved {
                return Ok(used);
            }
        }
    }

    /// Lets one layer work, once; false if there was nothing for it to do.
    fn step(
        &mut self,
        at: usize,
        input: &[u8],
        used: &mut usize,
        body: &mut Vec<u8>,
        bounds: Bounds<'_>,
    ) -> Result<bool, ErrorKind> {
        let (before, rest) = self.layers.split_at_mut(at);
        let [layer, behind @ ..] = rest else {
            return Ok(false);
        };
        let source = match before.last() {
            Some(before) => &before.out[before.ready.clone()],
            None => &input[*used..],
        };
        if !layer.ready.is_empty() || (source.is_empty() && layer.drained) {
            return Ok(false);
        }
        let room = match behind {
            [] => bounds.hold_at.saturating_sub(body.len()).min(PIECE),
            _ => PIECE,
        };
        if room == 0 {
            self.held = true;
            return Ok(false);
        }
        let step = layer.engine.step(source, &mut layer.out[..room])?;
        if step.used == 0 && step.made == 0 && !source.is_empty() {
            return Err(PeerFault::BadContentCoding.into());
        }
        layer.drained = step.made < room;
        layer.made += step.made as u64;
        match before.last_mut() {
            Some(before) => before.ready.start += step.used,
            None => {
                *used += step.used;
                self.taken += step.used as u64;
            }
        }
        let over = bounds
            .decoded
            .map_or(0, |limit| layer.made.saturating_sub(limit));
        if behind.is_empty() {
            let within = step.made - step.made.min(usize::try_from(over).unwrap_or(usize::MAX));
            body.extend_from_slice(&layer.out[..within]);
        } else {
            layer.ready = 0..step.made;
        }
        if over > 0 {
            return Err(LimitExceeded::DecodedBytes(layer.made - over).into());
        }
        if let Some(ratio) = bounds.limits.decode_ratio
            && layer.made > RATIO_FROM
            && layer.made / u64::from(ratio.max(1)) > self.taken
        {
            return Err(LimitExceeded::DecodeRatio(ratio).into());
        }
        Ok(step.used > 0 || step.made > 0)
    }
}

impl Layer {
    /// Ready for another body, if its memory is worth keeping.
    fn reset(mut self) -> Option<Self> {
        (self.ready, self.made, self.drained) = (0..0, 0, true);
        self.engine.reset().then_some(self)
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codings = self.layers.iter().map(|layer| layer.engine.coding());
        f.debug_list().entries(codings).finish()
    }
}

/// The most codings that are taken off a body. More than two make no sense; each may multiply the work.
const MOST_CODINGS: usize = 5;

/// What a layer makes at a time. Holds what deflate can refer back to, so that zlib copies no more than it must.
const PIECE: usize = 32 * 1024;

/// The ratio is looked at only beyond so many decoded bytes: a small body does no harm.
const RATIO_FROM: u64 = 1024 * 1024;
