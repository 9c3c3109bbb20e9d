//! The challenges in `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110 §11.6.1, §11.7.1): several in one field, each
//! with a token or with parameters. What the parameters mean is left to the schemes.

use std::borrow::Cow;

/// One challenge.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Challenge {
    /// In lower case.
    pub(super) scheme: String,
    /// Names in lower case, values without their quotes. Each name stands once.
    parameters: Vec<(String, Vec<u8>)>,
    /// Why the challenge must not be answered: it is malformed or larger than the limits.
    fault: Option<&'static str>,
}

impl Challenge {
    /// The value of a parameter, whose name is given in lower case.
    pub(super) fn parameter(&self, name: &str) -> Option<&[u8]> {
        let mut parameters = self.parameters.iter();
        let (_, value) = parameters.find(|(n, _)| n == name)?;
        Some(value)
    }

    /// Why the challenge cannot be answered at all.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    fn add(&mut self, name: String, value: Option<Cow<'_, [u8]>>) {
        let fault = match &value {
            None => "a quoted string has no end",
            Some(value) if value.len() > MOST_BYTES => "a value is too long",
            // A name stands at most once (RFC 9110 §11.2).
            Some(_) if self.parameter(&name).is_some() => "a parameter is there twice",
            Some(_) if self.parameters.len() == MOST_PARAMETERS => "it has too many parameters",
            Some(value) => {
                self.parameters.push((name, value.to_vec()));
                return;
            }
        };
        self.fault.get_or_insert(fault);
    }
}

/// The challenges of all fields of one response, in order. Those above the limit are left out.
pub(super) fn read<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Vec<Challenge> {
    let mut challenges = Vec::new();
    for field in fields {
        read_field(field, &mut challenges);
    }
    challenges.truncate(MOST_CHALLENGES);
    challenges
}

fn read_field(field: &[u8], challenges: &mut Vec<Challenge>) {
    let mut rest = Reader(field);
    // A parameter before the first scheme of a field belongs to no challenge.
    let mut open = false;
    loop {
        rest.skip(|b| is_space(b) || b == b',');
        if rest.0.is_empty() || challenges.len() > MOST_CHALLENGES {
            return;
        }
        let word = rest.take(is_token);
        if word.is_empty() {
            // No list element begins so: up to the next comma, there is nothing to read.
            rest.skip(|b| b != b',');
            if let Some(last) = challenges.last_mut().filter(|_| open) {
                last.fault.get_or_insert("it is not a list of parameters");
            }
            continue;
        }
        let name = String::from_utf8_lossy(word).to_ascii_lowercase();
        let spaces = rest.take(is_space);
        if rest.0.first() == Some(&b'=') {
            rest.0 = &rest.0[1..];
            rest.skip(is_space);
            let value = rest.value();
            if let Some(last) = challenges.last_mut().filter(|_| open) {
                last.add(name, value);
            }
            continue;
        }
        challenges.push(Challenge {
            scheme: name,
            parameters: Vec::new(),
            fault: None,
        });
        open = true;
        if !spaces.is_empty() {
            rest.skip_token68();
        }
    }
}

/// The unread rest of a field.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|b| !is_part(*b));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn skip(&mut self, is_part: impl Fn(u8) -> bool) {
        self.take(is_part);
    }

    /// The value of a parameter: a quoted string or a token, which may be empty, as in curl. `None` for a quoted string
    /// without an end.
    fn value(&mut self) -> Option<Cow<'a, [u8]>> {
        if self.0.first() == Some(&b'"') {
            return self.quoted().map(Cow::Owned);
        }
        let token = self.take(|b| !is_space(b) && b != b',' && b != b'"');
        Some(Cow::Borrowed(token))
    }

    /// A quoted string (RFC 9110 §5.6.4), from its first quote on; `None` if it has no end.
    fn quoted(&mut self) -> Option<Vec<u8>> {
        let mut bytes = self.0.iter().copied().enumerate().skip(1);
        let mut text = Vec::new();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(text);
                }
                b'\\' => text.push(bytes.next()?.1),
                byte => text.push(byte),
            }
        }
        self.0 = &[];
        None
    }

    /// Skips a token68, as `Negotiate` has. Parameters are not skipped: they go on after their `=`.
    fn skip_token68(&mut self) {
        let whole = self.0;
        self.skip(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b));
        let has_text = self.0.len() < whole.len();
        self.skip(|b| b == b'=');
        self.skip(is_space);
        let ends = matches!(self.0.first(), None | Some(b','));
        if !has_text || !ends {
            self.0 = whole;
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The most challenges of one response.
const MOST_CHALLENGES: usize = 16;
/// The most parameters of one challenge.
const MOST_PARAMETERS: usize = 32;
/// The most bytes of one value.
const MOST_BYTES: usize = 4096;
