//! Compares pages with the one that a host sends for paths that do not exist.

use memchr::memmem;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// What a page looks like, apart from its own address in the text.
///
/// ```
/// use crawler_cli::check::verdict::Fingerprint;
///
/// let url = |path: &str| format!("http://h/{path}").parse().expect("a URL");
/// let page = |path: &str, text: &str| Fingerprint::of(&url(path), text.as_bytes());
/// let control = page("4f8a", "<title>Oops</title> There is no 4f8a here.");
/// assert!(control.resembles(&page("lost", "<title>Oops</title> There is no lost here.")));
/// assert!(!control.resembles(&page("guide", "<title>Guide</title> How to install the program.")));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fingerprint {
    title: Option<u64>,
    /// The hash of the text.
    text: u64,
    /// Texts with many words in common differ in few bits.
    words: u64,
    count: usize,
}

impl Fingerprint {
    /// The fingerprint of the page at this URL with this body. Occurrences of the path, and of its last segment, do not
    /// count: many servers repeat them.
    pub fn of(url: &Url, body: &[u8]) -> Self {
        let mut text = String::from_utf8_lossy(body).into_owned();
        let path = url.path();
        let last = path.trim_end_matches('/').rsplit('/').next();
        for own in [Some(url.as_str()), Some(path), last]
            .into_iter()
            .flatten()
            .filter(|own| own.len() > 2)
        {
            if memmem::find(text.as_bytes(), own.as_bytes()).is_some() {
                text = text.replace(own, "");
            }
        }
        let mut signs = [0i32; 64];
        let mut count = 0;
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2) {
            count += 1;
            let hash = xxh3_64(pair.join(" ").as_bytes());
            for (bit, sign) in signs.iter_mut().enumerate() {
                *sign += match hash >> bit & 1 {
                    1 => 1,
                    _ => -1,
                };
            }
        }
        let bits = signs.iter().enumerate();
        let words_hash = bits.fold(0, |bits, (bit, sign)| bits | u64::from(*sign > 0) << bit);
        Self {
            title: title(&text).map(|title| xxh3_64(title.as_bytes())),
            text: xxh3_64(words.join(" ").as_bytes()),
            words: words_hash,
            count,
        }
    }

    /// Whether two pages are the same page but for details such as times and tokens.
    pub fn resembles(&self, other: &Self) -> bool {
        if self.title != other.title {
            return false;
        }
        let sizes = self.count.min(other.count)..=self.count.max(other.count);
        let is_alike = (self.words ^ other.words).count_ones() <= CLOSE
            && *sizes.start() >= FEW
            && sizes.end() - sizes.start() <= sizes.end() / 20;
        self.text == other.text || is_alike
    }
}

/// The text of the title element.
fn title(text: &str) -> Option<&str> {
    let start = text.find("<title")?;
    let (_, rest) = text[start..].split_once('>')?;
    let (title, _) = rest.split_once("</")?;
    Some(title.trim())
}

/// The most bits in which the words of similar pages differ: 3 of 64 (Manku, Jain, Das Sarma, WWW 2007).
const CLOSE: u32 = 3;

/// With fewer words, only equal texts are alike.
const FEW: usize = 32;
