//! A server of a tree that tests change while it runs: listings and files, with validators, by the rules of RFC 9110 §13.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Answer, Script, index, response};

/// The server, and its tree.
pub(crate) struct TreeServer {
    pub(crate) script: Script,
    tree: Arc<Mutex<Tree>>,
}

/// What the server has.
#[derive(Default)]
pub(crate) struct Tree {
    /// The files by their paths, as they are in URLs: `a/x`. Directories are where files are.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Directories without files: `a/b/`.
    pub(crate) empty: Vec<String>,
    /// Complete responses in place of the usual ones, by the path of the URL.
    pub(crate) instead: BTreeMap<String, Vec<u8>>,
    /// Listings have validators, too.
    pub(crate) dates_listings: bool,
    /// Conditional requests are answered 304, whatever has changed.
    pub(crate) lies: bool,
    /// Listings show sizes and times. All files are of the same time.
    pub(crate) sizes: bool,
}

impl TreeServer {
    /// Starts a server with these files, each with its path as content.
    pub(crate) fn start(files: &[&str]) -> Self {
        let mut tree = Tree::default();
        for file in files {
            tree.put(file, file);
        }
        let tree = Arc::new(Mutex::new(tree));
        let shared = Arc::clone(&tree);
        let script = Script::start_with_heads(move |head| {
            let tree = shared.lock().expect("no test panicked here");
            Answer::Bytes(tree.answer(head))
        });
        Self { script, tree }
    }

    pub(crate) fn url(&self) -> String {
        self.script.url("/")
    }

    /// The tree, to change it.
    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().expect("no test panicked here")
    }

    /// The requests after the first `seen` ones, in order.
    pub(crate) fn requests_after(&self, seen: usize) -> Vec<String> {
        let mut all = self.script.requests().split_off(seen);
        all.sort();
        all
    }

    /// The number of requests so far.
    pub(crate) fn seen(&self) -> usize {
        self.script.requests().len()
    }
}

impl Tree {
    pub(crate) fn put(&mut self, path: &str, content: &str) {
        self.files
            .insert(path.to_owned(), content.as_bytes().to_vec());
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    fn answer(&self, head: &str) -> Vec<u8> {
        let line = head.lines().next().unwrap_or("");
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = target.trim_start_matches('/');
        if let Some(bytes) = self.instead.get(path) {
            return bytes.clone();
        }
        let (fields, body, has_tag) = if path.is_empty() || path.ends_with('/') {
            let names = self.names(path);
            if names.is_empty() && !path.is_empty() && !self.empty.iter().any(|dir| dir == path) {
                return response(404, "", "");
            }
            let fields = "Content-Type: text/html\r\n".to_owned();
            let page = match self.sizes {
                true => self.dated_index(path, &names),
                false => index(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            };
            (fields, page.into_bytes(), self.dates_listings)
        } else if let Some(content) = self.files.get(path) {
            let fields = match self.sizes {
                true => "Last-Modified: Thu, 29 Feb 2024 23:59:07 GMT\r\n",
                false => "",
            };
            (fields.to_owned(), content.clone(), true)
        } else {
            return response(404, "", "");
        };
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let tag = format!("\"{:x}\"", hasher.finish());
        let asked = format!("if-none-match: {tag}");
        let is_asked = |line: &str| match self.lies {
            true => line.to_ascii_lowercase().starts_with("if-none-match: "),
            false => line.eq_ignore_ascii_case(&asked),
        };
        if has_tag && head.lines().any(is_asked) {
            return response(304, &format!("ETag: {tag}\r\n"), "");
        }
        let fields = match has_tag {
            true => format!("{fields}ETag: {tag}\r\n"),
            false => fields,
        };
        let mut answer = response(200, &fields, &body);
        if method == "HEAD" {
            answer.truncate(answer.len() - body.len());
        }
        answer
    }

    /// A page as nginx writes it, with sizes and times.
    fn dated_index(&self, directory: &str, names: &[String]) -> String {
        let mut body = "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n".to_owned();
        for name in names {
            let size = self.files.get(&format!("{directory}{name}"));
            let size = size.map_or("-".to_owned(), |content| content.len().to_string());
            body += &format!("<a href=\"{name}\">{name}</a>     29-Feb-2024 23:59     {size}\r\n");
        }
        body + "</pre><hr></body></html>\r\n"
    }

    /// The names in a directory.
    fn names(&self, directory: &str) -> Vec<String> {
        let all = self.files.keys().chain(&self.empty);
        let below = all.filter_map(|path| path.strip_prefix(directory));
        let mut names: Vec<String> = below
            .filter(|rest| !rest.is_empty())
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => format!("{name}/"),
                None => rest.to_owned(),
            })
            .collect();
        names.dedup();
        names
    }
}
