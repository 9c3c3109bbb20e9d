//! Lines that are JSON objects with a URL in one of the fields. `crawler-cli find --json` writes these; the line with its
//! summary is ignored.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The URLs of a line, each behind its offset. `names`: the name of the field, after those of the fields around it. A
/// field may hold a list of URLs.
///
/// # Errors
/// What is wrong with the line, in words.
pub(super) fn urls<'l>(
    line: &'l [u8],
    names: &[&str],
) -> Result<impl Iterator<Item = (usize, Cow<'l, str>)>, String> {
    let found = read(line, names)?;
    if found.urls.is_empty() && !found.is_summary {
        return Err(format!("no field {}", names.join(".")));
    }
    // They come in the order of the line.
    let mut from = 0;
    Ok(found.urls.into_iter().map(move |url| {
        let (at, end) = position(line, from, &url).unwrap_or((from, from));
        from = end;
        (at, url)
    }))
}

/// What a line holds.
#[derive(Default)]
struct Found<'l> {
    urls: Vec<Cow<'l, str>>,
    /// The line is the summary of a search or a check.
    is_summary: bool,
}

fn read<'l>(line: &'l [u8], names: &[&str]) -> Result<Found<'l>, String> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    let field = Field {
        names,
        depth: 0,
        found: &mut found,
    };
    let read = field.deserialize(&mut json).and_then(|()| json.end());
    match read {
        Ok(()) => Ok(found),
        Err(error) if error.is_data() => {
            let text = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            Err(text.strip_suffix(&place).unwrap_or(&text).to_owned())
        }
        Err(error) => Err(format!("not JSON: wrong at column {}", error.column())),
    }
}

/// Where the text of a string begins in a line, and where the string ends. What is before `from` is not looked at.
fn position(line: &[u8], from: usize, url: &str) -> Option<(usize, usize)> {
    if let Some(offset) = offset(line, url) {
        let begin = offset + url.len() - url.trim_start().len();
        return Some((begin, offset + url.len() + 1));
    }
    // The string has escapes. Whatever string of the line says the same is as good.
    let mut at = from;
    loop {
        let start = at + memchr::memchr(b'"', line.get(at..)?)? + 1;
        let mut end = start;
        while *line.get(end)? != b'"' {
            end += if line[end] == b'\\' { 2 } else { 1 };
        }
        let text = serde_json::from_slice::<String>(line.get(start - 1..=end)?).ok()?;
        if text == url {
            return Some((start, end + 1));
        }
        at = end + 1;
    }
}

/// Where `part` begins in `whole`, if it is a part of the same memory.
fn offset(whole: &[u8], part: &str) -> Option<usize> {
    let offset = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (offset + part.len() <= whole.len()).then_some(offset)
}

/// Reads one value: `depth` of the names lead to it.
struct Field<'f, 'l> {
    names: &'f [&'f str],
    depth: usize,
    found: &'f mut Found<'l>,
}

impl<'l> DeserializeSeed<'l> for Field<'_, 'l> {
    type Value = ();

    fn deserialize<D: Deserializer<'l>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'l> Visitor<'l> for Field<'_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.get(self.depth.wrapping_sub(1)) {
            None => f.write_str("a JSON object"),
            Some(name) if self.depth < self.names.len() => {
                write!(f, "an object in the field {name}")
            }
            Some(name) => write!(f, "a URL in the field {name}"),
        }
    }

    fn visit_map<M: MapAccess<'l>>(self, mut map: M) -> Result<(), M::Error> {
        let Some(&wanted) = self.names.get(self.depth) else {
            return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
        };
        while let Some(Name(name)) = map.next_key()? {
            if name == wanted {
                map.next_value_seed(Field {
                    names: self.names,
                    depth: self.depth + 1,
                    found: self.found,
                })?;
            } else {
                self.found.is_summary |= self.depth == 0 && name == "summary";
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'l>>(self, mut seq: S) -> Result<(), S::Error> {
        if self.depth < self.names.len() {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        }
        loop {
            let element = Field {
                names: self.names,
                depth: self.depth,
                found: self.found,
            };
            if seq.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'l str) -> Result<(), E> {
        self.text(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.text(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        match self.depth {
            0 => Err(E::invalid_type(de::Unexpected::Unit, &self)),
            _ => Ok(()),
        }
    }
}

impl<'l> Field<'_, 'l> {
    fn text<E: de::Error>(self, text: Cow<'l, str>) -> Result<(), E> {
        if self.depth < self.names.len() {
            return Err(E::invalid_type(de::Unexpected::Str(&text), &self));
        }
        if !text.trim().is_empty() {
            self.found.urls.push(text);
        }
        Ok(())
    }
}

/// The name of a field, without a copy if it has no escapes.
struct Name<'l>(Cow<'l, str>);

impl<'l> de::Deserialize<'l> for Name<'l> {
    fn deserialize<D: Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'l> Visitor<'l> for Reader {
            type Value = Name<'l>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'l str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::column;
    use super::*;

    fn found(line: &str, field: &str) -> Result<Vec<(String, u32)>, String> {
        let names: Vec<&str> = field.split('.').collect();
        let urls = urls(line.as_bytes(), &names)?;
        let urls = urls.map(|(at, url)| (url.trim().to_owned(), column(line.as_bytes(), at)));
        Ok(urls.collect())
    }

    #[test]
    fn urls_are_found_with_their_columns() {
        let table = r#"
            url {"url":"http://x/"} => http://x/:9
            url {"é":1, "url": " http://x/"} => http://x/:18
            url {"a":{"url":0},"url":"u"} => u:23
            b.c {"a":"A","b":{"c":"B"}} => B:20
            url {"a":"\"","url":"http:\/\/x\/?a&b"} => http://x/?a&b:18
            url {"url":["\/a","b","\/a"]} => /a:10 b:16 /a:20
            url {"url":["u","v"]} => u:10 v:14"#;
        for row in table.trim().lines() {
            let (line, expected) = row.trim().split_once(" => ").expect("a row");
            let (field, line) = line.split_once(' ').expect("a row");
            let urls = found(line, field).expect("URLs").into_iter();
            let urls: Vec<_> = urls
                .map(|(url, column)| format!("{url}:{column}"))
                .collect();
            assert_eq!(urls.join(" "), expected, "{row}");
        }
        for nothing in [r#"{"a":1}"#, r#"{"url":null}"#, r#"{"url":""}"#, "{}"] {
            assert_eq!(
                found(nothing, "url"),
                Err("no field url".to_owned()),
                "{nothing}"
            );
        }
    }

    #[test]
    fn wrong_lines_are_described() {
        for (field, line, error) in [
            ("url", r#"{"url":"http"#, "not JSON: wrong at column 12"),
            ("url", "http://x/", "not JSON: wrong at column 1"),
            ("url", r#"{"url":"a"} b"#, "not JSON: wrong at column 13"),
        ] {
            assert_eq!(found(line, field), Err(error.to_owned()), "{line}");
        }
        for (field, line, error) in [
            ("url", "7", "`7`, expected a JSON object"),
            (
                "url",
                r#"{"url":7}"#,
                "`7`, expected a URL in the field url",
            ),
            (
                "a.b",
                r#"{"a":7}"#,
                "`7`, expected an object in the field a",
            ),
        ] {
            let error = format!("invalid type: integer {error}");
            assert_eq!(found(line, field), Err(error), "{line}");
        }
    }
}
