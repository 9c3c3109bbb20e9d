//! The options of `load` that only clients of courser support, and the requests that these options describe.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use courser::proto::Defaults;
use courser::{Bytes, Request};
use hyper::Uri;

use crate::measure::{Plan, Target, method, takes_body};

/// The options of clients of courser on one thread (host, client, pipeline). Other clients do not support them.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Only with --client host, client or pipeline")]
pub struct Asking {
    /// A header field of each request; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,

    /// A file with one `URL` or `METHOD URL` on each line, requested in turn; `-` is the standard input. A URL may be a
    /// path on the host of the argument URL. Empty lines and lines that begin with `#` are skipped
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,
}

impl Asking {
    /// The name of the first of these options that was given.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--header", !self.headers.is_empty()),
            ("--urls", self.urls.is_some()),
        ];
        let (name, _) = options.into_iter().find(|(_, given)| *given)?;
        Some(name)
    }

    /// The requests. With `one_host`, all go to the host of the plan's URL.
    ///
    /// # Errors
    /// A file cannot be read, a line is not valid or names another host, or a header field is not valid.
    pub fn script(&self, plan: &Plan, one_host: bool) -> Result<Script, Box<dyn Error>> {
        let reader = Reader {
            base: &plan.url,
            one_host,
            method: plan.method(),
        };
        let lines = match &self.urls {
            Some(path) => reader.file(path)?,
            None => vec![reader.line(&plan.url.url)?],
        };
        let script = Script {
            lines,
            next: 0,
            headers: self.headers.clone(),
            data: plan.body()?,
        };
        // One request is checked here, instead of an error for each request.
        let mut probe = script.request_for(&Line {
            target: "/".to_owned(),
            ..script.lines[0].clone()
        });
        let encoded = probe.encode(&Defaults::new("probe", None));
        encoded.map_err(|misuse| misuse.to_string())?;
        Ok(script)
    }
}

/// An endless sequence of requests.
#[derive(Debug)]
pub struct Script {
    /// Not empty.
    lines: Vec<Line>,
    /// The index of the next line.
    next: usize,
    headers: Vec<(String, String)>,
    data: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    method: String,
    /// A path or a URL, as the client needs it.
    target: String,
}

impl Script {
    /// A new request for the next line.
    #[must_use]
    pub fn request(&mut self) -> Request {
        let line = self.advance();
        self.request_for(&self.lines[line])
    }

    /// Turns an earlier request of this script into the next one. With a single line, the encoded request is reused
    /// unchanged.
    #[inline]
    pub fn reuse(&mut self, request: &mut Request) {
        if self.lines.len() > 1 {
            self.change(request);
        }
    }

    fn change(&mut self, request: &mut Request) {
        let line = self.advance();
        let Line { method, target } = &self.lines[line];
        request.set_target(target);
        if request.method() != method {
            request.set_method(method);
            match &self.data {
                Some(data) if takes_body(method) => request.body(data.clone()),
                _ => request.no_body(),
            };
        }
    }

    fn request_for(&self, line: &Line) -> Request {
        let mut request = Request::new(&*line.method, &*line.target);
        for (name, value) in &self.headers {
            request.header(name, value);
        }
        if let Some(data) = &self.data
            && takes_body(&line.method)
        {
            request.body(data.clone());
        }
        request
    }

    /// The index of the next line.
    fn advance(&mut self) -> usize {
        let line = self.next;
        self.next = (line + 1) % self.lines.len();
        line
    }
}

/// Reads lines of URLs.
struct Reader<'a> {
    base: &'a Target,
    one_host: bool,
    /// The method for lines without one.
    method: &'a str,
}

impl Reader<'_> {
    fn file(&self, path: &Path) -> Result<Vec<Line>, Box<dyn Error>> {
        let (name, text) = if path == Path::new("-") {
            ("standard input".to_owned(), io::read_to_string(io::stdin()))
        } else {
            (path.display().to_string(), fs::read_to_string(path))
        };
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = self.line(line);
            lines.push(line.map_err(|error| format!("{name}, line {}: {error}", number + 1))?);
        }
        if lines.is_empty() {
            return Err(format!("{name}: there is no URL in it").into());
        }
        Ok(lines)
    }

    fn line(&self, line: &str) -> Result<Line, Box<dyn Error>> {
        let words: Vec<_> = line.split_whitespace().collect();
        let (method, url) = match words[..] {
            [url] => (self.method.to_owned(), url),
            [name, url] => (method(name)?, url),
            _ => return Err("neither `URL` nor `METHOD URL`".into()),
        };
        Ok(Line {
            method,
            target: self.target(url)?,
        })
    }

    fn target(&self, url: &str) -> Result<String, Box<dyn Error>> {
        let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let scheme = uri.scheme_str();
        let same_scheme = scheme == Some(self.base.scheme());
        match (scheme, uri.authority()) {
            (None, None) if url.starts_with('/') && self.one_host => Ok(path.to_owned()),
            (None, None) if url.starts_with('/') => Ok(self.base.with_path(path)),
            (Some("http" | "https"), Some(_)) if !self.one_host => Ok(url.to_owned()),
            (Some("http" | "https"), Some(authority)) => {
                if same_scheme && authority.as_str() == self.base.authority {
                    Ok(path.to_owned())
                } else {
                    Err(format!(
                        "{url} is not at {}, and only --client client has several hosts",
                        self.base.with_path("/")
                    )
                    .into())
                }
            }
            _ => Err(format!("{url} is neither a path nor an http or https URL").into()),
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("not of the form `NAME: VALUE`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::{Asking, Script};
    use crate::measure::Plan;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        plan: Plan,
    }

    fn plan() -> Plan {
        Cli::parse_from(["test", "http://127.0.0.1:1/first"]).plan
    }

    fn script(text: &str, one_host: bool, asking: Asking) -> Result<Script, String> {
        script_of(&plan(), text, one_host, asking)
    }

    fn script_of(
        plan: &Plan,
        text: &str,
        one_host: bool,
        asking: Asking,
    ) -> Result<Script, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let asking = Asking {
            urls: Some(file.path().to_owned()),
            ..asking
        };
        let script = asking.script(plan, one_host);
        script.map_err(|error| error.to_string())
    }

    fn take(script: &mut Script, count: usize) -> Vec<String> {
        let request = |_| script.request();
        let line = |request: courser::Request| format!("{} {}", request.method(), request.target());
        (0..count).map(request).map(line).collect()
    }

    #[test]
    fn lines_come_in_turn() {
        let text = "# three\n/a\n\n  HEAD http://127.0.0.1:1/b?c\nPOST /d\n";
        let mut one = script(text, true, Asking::default()).unwrap();
        let expected = ["GET /a", "HEAD /b?c", "POST /d", "GET /a"];
        assert_eq!(take(&mut one, 4), expected);
        let mut any = script(text, false, Asking::default()).unwrap();
        assert_eq!(take(&mut any, 1), ["GET http://127.0.0.1:1/a"]);
    }

    #[test]
    fn a_request_is_made_the_next() {
        let plan = Plan {
            data: Some("body".to_owned()),
            ..plan()
        };
        let text = "GET /a\nPUT /b\n/c\n";
        let mut script = script_of(&plan, text, true, Asking::default()).unwrap();
        let defaults = courser::proto::Defaults::new("h", None);
        let mut request = script.request();
        let mut heads = Vec::new();
        for _ in 0..3 {
            request.encode(&defaults).unwrap();
            heads.push(String::from_utf8_lossy(request.encoded_head()).into_owned());
            script.reuse(&mut request);
        }
        let length = |head: &str| head.contains("Content-Length: 4\r\n");
        assert!(
            heads[0].starts_with("GET /a ") && !length(&heads[0]),
            "{heads:?}"
        );
        assert!(
            heads[1].starts_with("PUT /b ") && length(&heads[1]),
            "{heads:?}"
        );
        assert!(
            heads[2].starts_with("POST /c ") && length(&heads[2]),
            "{heads:?}"
        );
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text, one_host| script(text, one_host, Asking::default()).unwrap_err();
        for (text, part) in [
            (
                "/a\n\n#\nftp://h/\n",
                ", line 4: ftp://h/ is neither a path nor",
            ),
            ("/a\nGET /b c\n", ", line 2: neither `URL` nor"),
            ("G{T /b\n", ", line 1: \"G{T\" is no method"),
            ("CONNECT /b\n", ", line 1: CONNECT opens"),
            (
                "http://127.0.0.1:2/\n",
                ", line 1: http://127.0.0.1:2/ is not at http://127.0.0.1:1/",
            ),
            (
                "https://127.0.0.1:1/\n",
                ", line 1: https://127.0.0.1:1/ is not at",
            ),
            ("\n# none\n", ": there is no URL in it"),
        ] {
            let error = error(text, true);
            assert!(error.contains(part), "{error}");
        }
        assert!(script("http://127.0.0.1:2/\n", false, Asking::default()).is_ok());
    }

    #[test]
    fn what_the_engine_refuses_is_refused_once() {
        let refused = |name: &str, value: &str| {
            let asking = Asking {
                headers: vec![(name.to_owned(), value.to_owned())],
                ..Asking::default()
            };
            asking.script(&plan(), true).is_err()
        };
        assert!(refused("X", "a\r\nb") && refused("X Y", "a") && refused("Content-Length", "1"));
        assert!(!refused("X", "a"));
    }
}
