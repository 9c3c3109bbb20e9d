//! Numbers of few bytes (LEB128): what is kept for each of millions of URLs is written with these.

/// Appends numbers and bytes.
#[derive(Debug, Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number of either sign.
    pub fn signed(&mut self, number: i64) {
        self.number(zigzag(number));
    }

    /// Bytes, with their number before them.
    pub fn slice(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Reads what a [`Writer`] wrote. Each method returns `None` if the bytes are damaged.
#[derive(Debug)]
pub struct Reader<'a> {
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (slice, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(slice)
    }
}

/// Small numbers of either sign become small numbers.
pub fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The number that became this one.
pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::MAX];
        let signed = [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN];
        let mut writer = Writer::default();
        numbers.iter().for_each(|&number| writer.number(number));
        signed.iter().for_each(|&number| writer.signed(number));
        writer.slice(b"text");
        writer.byte(9);
        let mut reader = Reader::new(&writer.bytes);
        for number in numbers {
            assert_eq!(reader.number(), Some(number));
        }
        for number in signed {
            assert_eq!(reader.signed(), Some(number));
        }
        assert_eq!(reader.slice(), Some(&b"text"[..]));
        assert_eq!((reader.byte(), reader.byte()), (Some(9), None));
    }
}
