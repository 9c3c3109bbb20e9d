//! Sitemaps (protocol 0.9 of sitemaps.org): lists of the pages of a site, in XML or plain text, and lists of sitemaps,
//! in XML. Both may be compressed by gzip. The caller uses their URLs as further starts of a crawl.

use std::error::Error;
use std::fmt;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use url::Url;

use super::time;
use super::xml::{Document, ElementEvent};
use crate::find::range::ListedTime;

/// The content of a sitemap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sitemap {
    /// The pages, in order.
    pub pages: Vec<Located>,
    /// The other sitemaps, in order.
    pub sitemaps: Vec<Located>,
    /// Number of locations that are not http or https URLs, or are longer than [`SitemapLimits::url_bytes`].
    pub unusable: usize,
    /// Whether the end tag was seen, so that nothing is missing. Always false for plain text, which has no end.
    pub ended: bool,
}

/// A location in a sitemap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Located {
    /// The URL, without a fragment.
    pub url: Url,
    /// The time of the last change (`lastmod`), if the sitemap has one.
    pub modified: Option<ListedTime>,
}

/// Limits for one sitemap. The defaults are the limits of the protocol.
#[derive(Clone, Copy, Debug)]
pub struct SitemapLimits {
    /// Most bytes after decompression. Default 50 MiB.
    pub bytes: usize,
    /// Most locations. Default 50,000.
    pub locations: usize,
    /// Longest URL in bytes. Default 2048.
    pub url_bytes: usize,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self {
            bytes: 50 << 20,
            locations: 50_000,
            url_bytes: 2048,
        }
    }
}

/// Why a sitemap cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SitemapError {
    /// More bytes than [`SitemapLimits::bytes`].
    TooLarge,
    /// More locations than [`SitemapLimits::locations`].
    TooManyLocations,
    /// The gzip data is broken, or cut.
    Compression,
    /// XML that is not a sitemap, or that is cut.
    NotASitemap,
}

impl fmt::Display for SitemapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the sitemap is too large",
            Self::TooManyLocations => "the sitemap has too many locations",
            Self::Compression => "the sitemap's gzip data is broken",
            Self::NotASitemap => "this is no whole sitemap",
        })
    }
}

impl Error for SitemapError {}

/// Reads a sitemap. Its first bytes decide the format: gzip, XML or plain text.
///
/// # Errors
/// [`SitemapError`]
pub fn sitemap(body: &[u8], limits: SitemapLimits) -> Result<Sitemap, SitemapError> {
    let inflated;
    let body = if body.starts_with(&GZIP) {
        inflated = inflate(body, limits.bytes)?;
        &inflated
    } else {
        body
    };
    if body.len() > limits.bytes {
        return Err(SitemapError::TooLarge);
    }
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut reader = SitemapReader {
        limits,
        sitemap: Sitemap::default(),
    };
    if body.trim_ascii_start().starts_with(b"<") {
        reader.xml(body)?;
    } else {
        for line in body.split(|&byte| byte == b'\n') {
            reader.page(line, None)?;
        }
    }
    Ok(reader.sitemap)
}

/// Decompresses at most `limit` bytes.
fn inflate(body: &[u8], limit: usize) -> Result<Vec<u8>, SitemapError> {
    let mut inflated = Vec::new();
    MultiGzDecoder::new(body)
        .take(limit as u64 + 1)
        .read_to_end(&mut inflated)
        .map_err(|_| SitemapError::Compression)?;
    if inflated.len() > limit {
        return Err(SitemapError::TooLarge);
    }
    Ok(inflated)
}

struct SitemapReader {
    limits: SitemapLimits,
    sitemap: Sitemap,
}

impl SitemapReader {
    fn xml(&mut self, body: &[u8]) -> Result<(), SitemapError> {
        let mut document = Document::new(body);
        let root = document.root().ok_or(SitemapError::NotASitemap)?;
        if !matches!(root.as_slice(), b"urlset" | b"sitemapindex") {
            return Err(SitemapError::NotASitemap);
        }
        let (mut location, mut modified) = (Vec::new(), None);
        while let Some(event) = document.next() {
            match event {
                // Images of a page have locations too. The location of the page itself comes first.
                ElementEvent::Start(start)
                    if matches!(start.name().as_ref(), b"url" | b"sitemap") =>
                {
                    location.clear();
                    modified = None;
                }
                ElementEvent::End(b"loc", text) if location.is_empty() => location = text.to_vec(),
                ElementEvent::End(b"lastmod", text) => modified = time::exact(text),
                ElementEvent::End(b"url", _) => self.page(&location, modified)?,
                ElementEvent::End(b"sitemap", _) => {
                    let located = self.located(&location, modified)?;
                    self.sitemap.sitemaps.extend(located);
                }
                _ => {}
            }
        }
        if document.is_whole {
            self.sitemap.ended = true;
            Ok(())
        } else {
            Err(SitemapError::NotASitemap)
        }
    }

    fn page(&mut self, location: &[u8], modified: Option<ListedTime>) -> Result<(), SitemapError> {
        let located = self.located(location, modified)?;
        self.sitemap.pages.extend(located);
        Ok(())
    }

    fn located(
        &mut self,
        location: &[u8],
        modified: Option<ListedTime>,
    ) -> Result<Option<Located>, SitemapError> {
        let location = location.trim_ascii();
        if location.is_empty() {
            return Ok(None);
        }
        let all = self.sitemap.pages.len() + self.sitemap.sitemaps.len() + self.sitemap.unusable;
        if all >= self.limits.locations {
            return Err(SitemapError::TooManyLocations);
        }
        let text = std::str::from_utf8(location).ok();
        let text = text.filter(|text| text.len() <= self.limits.url_bytes);
        let url = text.and_then(|text| Url::parse(text).ok());
        match url.filter(|url| matches!(url.scheme(), "http" | "https")) {
            Some(mut url) => {
                url.set_fragment(None);
                Ok(Some(Located { url, modified }))
            }
            None => {
                self.sitemap.unusable += 1;
                Ok(None)
            }
        }
    }
}

/// RFC 1952 §2.3.1
const GZIP: [u8; 2] = [0x1F, 0x8B];

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn urls(located: &[Located]) -> Vec<&str> {
        located.iter().map(|located| located.url.as_str()).collect()
    }

    const PAGES: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:image=\"x\">\n\
        <url><loc> http://h/a?x=1&amp;y=2#top\n</loc><lastmod>2024-02-29</lastmod><priority>0.8</priority></url>\n\
        <url><image:image><image:loc>http://h/i.png</image:loc></image:image></url>\n\
        <url><loc>ftp://h/no</loc></url><url><loc>/relative</loc></url>\
        <url><loc>https://h/b</loc><lastmod>2024-02-29T23:59:58+00:00</lastmod></url></urlset>\n";

    #[test]
    fn pages_are_read_plain_and_compressed() {
        let limits = SitemapLimits::default();
        let plain = sitemap(PAGES.as_bytes(), limits).expect("a sitemap");
        assert_eq!(
            urls(&plain.pages),
            ["http://h/a?x=1&y=2", "http://h/i.png", "https://h/b"]
        );
        assert_eq!(plain.unusable, 2);
        let day = plain.pages[0]
            .modified
            .map(|time| (time.seconds, time.span));
        assert_eq!(day, Some((1_709_164_800, 86_400)));
        let second = plain.pages[2]
            .modified
            .map(|time| (time.seconds, time.span));
        assert_eq!(second, Some((1_709_251_198, 1)));
        assert_eq!(sitemap(&gzip(PAGES.as_bytes()), limits), Ok(plain));
    }

    #[test]
    fn an_index_lists_sitemaps_and_a_text_pages() {
        let limits = SitemapLimits::default();
        let index = b"<sitemapindex><sitemap><loc>http://h/1.xml.gz</loc></sitemap></sitemapindex>";
        let index = sitemap(index, limits).expect("a sitemap");
        assert_eq!(urls(&index.sitemaps), ["http://h/1.xml.gz"]);
        assert!(index.pages.is_empty());
        let text = sitemap(b"http://h/a\r\nhttp://h/b\n\nno url\n", limits).expect("a sitemap");
        assert_eq!(urls(&text.pages), ["http://h/a", "http://h/b"]);
        assert_eq!(text.unusable, 1);
    }

    #[test]
    fn limits_and_faults_are_errors() {
        let limits = SitemapLimits {
            bytes: 1000,
            locations: 2,
            ..SitemapLimits::default()
        };
        let bomb = gzip(&vec![b' '; 10_000_000]);
        assert!(bomb.len() < 100_000);
        assert_eq!(sitemap(&bomb, limits), Err(SitemapError::TooLarge));
        assert_eq!(sitemap(&[b'x'; 1001], limits), Err(SitemapError::TooLarge));
        let three = b"http://h/a\nhttp://h/b\nhttp://h/c";
        assert_eq!(sitemap(three, limits), Err(SitemapError::TooManyLocations));
        let cut = gzip(PAGES.as_bytes());
        let cut = sitemap(&cut[..cut.len() / 2], SitemapLimits::default());
        assert_eq!(cut, Err(SitemapError::Compression));
        for body in [&b"<html></html>"[..], b"<urlset><url>", b"<"] {
            assert_eq!(sitemap(body, limits), Err(SitemapError::NotASitemap));
        }
    }
}
