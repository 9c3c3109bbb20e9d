//! Builds the URLs and paths of the host in reused buffers.

use url::Url;

use crate::found::Found;
use listing::path;

/// The URL of the host, and the buffers.
#[derive(Debug)]
pub(super) struct Spelling {
    /// Scheme and authority; the path is `/`.
    origin: Url,
    target: String,
    url: String,
    path: Vec<u8>,
}

impl Spelling {
    /// For the host of this URL.
    pub(super) fn of(url: &Url) -> Self {
        let mut origin = url.clone();
        origin.set_path("/");
        origin.set_query(None);
        origin.set_fragment(None);
        Self {
            origin,
            target: String::new(),
            url: String::new(),
            path: Vec::new(),
        }
    }

    pub(super) fn origin(&self) -> &Url {
        &self.origin
    }

    fn base(&self) -> &str {
        self.origin.as_str().trim_end_matches('/')
    }

    /// The URL of a target.
    pub(super) fn url(&self, target: &str) -> String {
        format!("{}{}", self.base(), target)
    }

    /// The URL of a target, parsed. Not joined to the origin: a target that begins with `//` would name another host.
    pub(super) fn parsed(&self, target: &str) -> Option<Url> {
        Url::parse(&self.url(target)).ok()
    }

    /// An empty buffer for a target.
    pub(super) fn take_buffer(&mut self) -> String {
        let mut target = std::mem::take(&mut self.target);
        target.clear();
        target
    }

    pub(super) fn give_back(&mut self, target: String) {
        self.target = target;
    }

    /// The entry with the URL and the path of its request target.
    pub(super) fn spelled<'a>(&'a mut self, target: &str, found: Found<'a>) -> Found<'a> {
        let path = target.split('?').next().unwrap_or(target);
        let trimmed = match path.strip_suffix('/') {
            Some("") | None => path,
            Some(trimmed) => trimmed,
        };
        path::decode_into(trimmed, &mut self.path);
        // A decoded segment may contain a `/`, so the name is found by its decoded length.
        let name = match path::split_last(trimmed) {
            Some((_, segment, _)) => path::decoded_len(segment),
            None => 1,
        };
        let from = self.path.len().saturating_sub(name);
        self.url.clear();
        self.url
            .push_str(self.origin.as_str().trim_end_matches('/'));
        self.url.push_str(target);
        Found {
            url: &self.url,
            path: &self.path,
            name: &self.path[from..],
            ..found
        }
    }
}
