//! Files of user names and passwords for hosts, as ftp(1), curl and wget read them: `.netrc`.

/// One entry of a file.
#[derive(Clone, Default, Eq, PartialEq)]
pub(crate) struct Entry {
    /// The name of the host; `None` for `default`.
    pub(crate) machine: Option<String>,
    pub(crate) login: String,
    pub(crate) password: String,
}

/// Reads a file. What follows `macdef` up to an empty line is skipped, and so are unknown words.
///
/// # Errors
/// A word that needs a value is the last one, or a quote has no end.
pub(crate) fn read(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut words = Words { rest: text };
    while let Some(word) = words.next()? {
        match &*word {
            "machine" => entries.push(Entry {
                machine: Some(words.value("machine")?.to_ascii_lowercase()),
                ..Entry::default()
            }),
            "default" => entries.push(Entry::default()),
            "login" | "password" | "account" => {
                let value = words.value(&word)?;
                match (entries.last_mut(), &*word) {
                    (Some(entry), "login") => entry.login = value,
                    (Some(entry), "password") => entry.password = value,
                    _ => {}
                }
            }
            "macdef" => words.skip_macro(),
            _ => {}
        }
    }
    Ok(entries)
}

/// The words of a file, without comments.
struct Words<'t> {
    rest: &'t str,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                break;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find(char::is_whitespace);
            let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest;
            return Ok(Some(word.to_owned()));
        };
        let mut word = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &quoted[at + 1..];
                    return Ok(Some(word));
                }
                '\\' => word.extend(chars.next().map(|(_, escaped)| match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                })),
                other => word.push(other),
            }
        }
        Err("a quote has no end".to_owned())
    }

    fn value(&mut self, word: &str) -> Result<String, String> {
        self.next()?.ok_or_else(|| format!("{word} has no value"))
    }

    fn skip_macro(&mut self) {
        self.rest = self.rest.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
}
