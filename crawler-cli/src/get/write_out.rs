//! `-w`: a format with curl's variables, printed after each transfer.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use url::Url;

use super::exit::Exit;
use super::facts::Facts;

/// A parsed format.
#[derive(Debug)]
pub(super) struct WriteOut {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Text(Vec<u8>),
    Variable(&'static Variable),
    /// `%header{name}`.
    Header(String),
    HeaderJson,
    Json,
    Stdout,
    Stderr,
    /// `%output{name}`, or `%output{>>name}` to append.
    Output {
        path: PathBuf,
        append: bool,
    },
    /// `%{onerror}`: the rest is printed only if the transfer failed.
    OnError,
    Unknown(Vec<u8>),
}

impl WriteOut {
    /// Parses any bytes: text that is neither a variable nor an escape is printed as it is.
    pub(super) fn parse(format: &[u8]) -> Self {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut rest = format;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            let special = match (byte, tail) {
                (b'%', [b'%', after @ ..]) => Some((Ok(b'%'), after)),
                (b'%', [b'{', name @ ..]) => braced(name).map(|(n, after)| (Err(named(n)), after)),
                (b'%', tail) => with_name(tail).map(|(piece, after)| (Err(piece), after)),
                (b'\\', [b'n', after @ ..]) => Some((Ok(b'\n'), after)),
                (b'\\', [b'r', after @ ..]) => Some((Ok(b'\r'), after)),
                (b'\\', [b't', after @ ..]) => Some((Ok(b'\t'), after)),
                _ => None,
            };
            match special {
                None => text.push(byte),
                Some((Ok(literal), after)) => {
                    text.push(literal);
                    rest = after;
                }
                Some((Err(piece), after)) => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(piece);
                    rest = after;
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Self { pieces }
    }

    /// Writes the format with its values. An unknown variable prints nothing to stdout and a line to stderr, as in
    /// curl.
    ///
    /// # Errors
    /// Errors of the two writers and of the files that the format names.
    pub(super) fn fill(
        &self,
        facts: &Facts,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> io::Result<()> {
        let mut to = Destination::Stdout;
        for piece in &self.pieces {
            let out: &mut dyn Write = match &mut to {
                Destination::Stdout => stdout,
                Destination::Stderr => stderr,
                Destination::File(file) => file,
            };
            match piece {
                Piece::Text(text) => out.write_all(text)?,
                Piece::Variable(variable) => (variable.field)(facts).write_text(out)?,
                Piece::Header(name) => out.write_all(facts.header(name).unwrap_or_default())?,
                Piece::HeaderJson => out.write_all(header_json(facts).as_bytes())?,
                Piece::Json => write!(out, "{}", json(facts))?,
                Piece::Stdout => to = Destination::Stdout,
                Piece::Stderr => to = Destination::Stderr,
                Piece::Output { path, append } => {
                    let mut options = File::options();
                    let options = options.create(true).write(true);
                    let file = options.append(*append).truncate(!append).open(path)?;
                    to = Destination::File(file);
                }
                Piece::OnError if facts.exit == Exit::Ok => break,
                Piece::OnError => {}
                Piece::Unknown(name) => {
                    let name = name.escape_ascii();
                    writeln!(
                        stderr,
                        "crawler-cli: unknown --write-out variable: '{name}'"
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The current destination of the output.
enum Destination {
    Stdout,
    Stderr,
    File(File),
}

/// Parses what follows a `%`, if it is `header{name}` or `output{name}`.
fn with_name(tail: &[u8]) -> Option<(Piece, &[u8])> {
    if let Some(rest) = tail.strip_prefix(b"header{") {
        let (name, after) = braced(rest)?;
        let name = String::from_utf8_lossy(name).into_owned();
        return Some((Piece::Header(name), after));
    }
    let (name, after) = braced(tail.strip_prefix(b"output{")?)?;
    let appended = name.strip_prefix(b">>");
    let path = PathBuf::from(OsStr::from_bytes(appended.unwrap_or(name)));
    let append = appended.is_some();
    Some((Piece::Output { path, append }, after))
}

/// Splits `name}after`.
fn braced(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|b| *b == b'}')?;
    Some((&text[..end], &text[end + 1..]))
}

fn named(name: &[u8]) -> Piece {
    match name {
        b"header_json" => Piece::HeaderJson,
        b"json" => Piece::Json,
        b"stdout" => Piece::Stdout,
        b"stderr" => Piece::Stderr,
        b"onerror" => Piece::OnError,
        name => match VARIABLES.iter().find(|v| v.name.as_bytes() == name) {
            Some(variable) => Piece::Variable(variable),
            None => Piece::Unknown(name.to_vec()),
        },
    }
}

/// All variables as one JSON object.
fn json(facts: &Facts) -> Value {
    let fields = VARIABLES
        .iter()
        .map(|v| (v.name.into(), (v.field)(facts).to_json()));
    Value::Object(fields.collect())
}

/// The headers as one JSON object: lower-case names in the order of their first occurrence, each with all its values;
/// one line per name, as in curl.
fn header_json(facts: &Facts) -> String {
    let mut grouped: Vec<(String, Vec<Value>)> = Vec::new();
    let mut index = HashMap::new();
    for (name, value) in &facts.headers {
        let name = name.to_ascii_lowercase();
        let at = *index.entry(name.clone()).or_insert(grouped.len());
        if at == grouped.len() {
            grouped.push((name, Vec::new()));
        }
        grouped[at].1.push(String::from_utf8_lossy(value).into());
    }
    let lines: Vec<String> = grouped
        .into_iter()
        .map(|(name, values)| format!("{}:{}", Value::from(name), Value::from(values)))
        .collect();
    format!("{{{}\n}}", lines.join(",\n"))
}

#[derive(Debug)]
struct Variable {
    name: &'static str,
    field: fn(&Facts) -> Field,
}

/// A value and how curl prints it.
enum Field {
    /// `None` is empty in text and `null` in JSON.
    Text(Option<String>),
    Number(u64),
    /// Three digits.
    Status(u16),
    /// Seconds with six decimals.
    Time(Duration),
}

impl Field {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Text(text) => out.write_all(text.as_deref().unwrap_or_default().as_bytes()),
            Self::Number(number) => write!(out, "{number}"),
            Self::Status(status) => write!(out, "{status:03}"),
            Self::Time(time) => write!(out, "{:.6}", time.as_secs_f64()),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_deref().into(),
            Self::Number(number) => (*number).into(),
            Self::Status(status) => (*status).into(),
            Self::Time(time) => ((time.as_secs_f64() * 1e6).round() / 1e6).into(),
        }
    }
}

fn text(value: impl Into<String>) -> Field {
    Field::Text(Some(value.into()))
}

/// The IP address; `None` over a Unix socket.
fn ip(end: &Option<(String, u16)>) -> Field {
    Field::Text(end.as_ref().map(|(ip, _)| ip.clone()))
}

/// The server's certificates in PEM, one after the other.
fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = BASE64_STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// A part of a URL; `None` if the URL is invalid or has no such part.
fn part(url: &str, part: fn(&Url) -> Option<String>) -> Field {
    Field::Text(Url::parse(url).ok().and_then(|url| part(&url)))
}

/// The URL as typed, with the default scheme if it has none.
fn typed(facts: &Facts) -> String {
    if facts.url.contains("://") {
        facts.url.clone()
    } else {
        format!("http://{}", facts.url)
    }
}

fn scheme(url: &Url) -> Option<String> {
    Some(url.scheme().to_owned())
}

fn host(url: &Url) -> Option<String> {
    url.host_str().map(str::to_owned)
}

fn port_of(url: &Url) -> Option<String> {
    url.port_or_known_default().map(|port| port.to_string())
}

fn path(url: &Url) -> Option<String> {
    Some(url.path().to_owned())
}

fn query(url: &Url) -> Option<String> {
    url.query().map(str::to_owned)
}

fn fragment(url: &Url) -> Option<String> {
    url.fragment().map(str::to_owned)
}

fn port(end: &Option<(String, u16)>) -> Field {
    Field::Number(end.as_ref().map_or(0, |(_, port)| *port).into())
}

const fn var(name: &'static str, field: fn(&Facts) -> Field) -> Variable {
    Variable { name, field }
}

/// The variables with a value, in the order of curl's manual. Omitted: the variables of FTP, and those that contain a
/// user or a password.
#[rustfmt::skip]
static VARIABLES: &[Variable] = &[
    var("certs", |f| text(pem(&f.certificates))),
    var("content_type", |f| Field::Text(f.header("content-type").map(|v| String::from_utf8_lossy(v).into_owned()))),
    var("errormsg", |f| Field::Text(f.error.clone())),
    var("exitcode", |f| Field::Number(f.exit.code().into())),
    var("filename_effective", |f| Field::Text(f.filename.clone())),
    var("http_code", |f| Field::Status(f.status)),
    var("http_connect", |f| Field::Status(f.proxy_status)),
    var("http_version", |f| text(f.http_version.unwrap_or("0"))),
    var("local_ip", |f| ip(&f.local)),
    var("local_port", |f| port(&f.local)),
    var("method", |f| text(&f.method)),
    var("num_certs", |f| Field::Number(f.certificates.len() as u64)),
    var("num_connects", |f| Field::Number(f.connects.into())),
    var("num_headers", |f| Field::Number(f.headers.len() as u64)),
    var("num_redirects", |f| Field::Number(f.redirects.into())),
    var("num_retries", |f| Field::Number(f.retries.into())),
    var("proxy_ssl_verify_result", |f| Field::Number(f.proxy_verify_result.into())),
    var("proxy_used", |f| Field::Number(f.proxied.into())),
    var("redirect_url", |f| Field::Text(Some(f.redirect_url.clone()).filter(|url| !url.is_empty()))),
    var("referer", |f| Field::Text(f.referer.clone())),
    var("remote_ip", |f| ip(&f.remote)),
    var("remote_port", |f| port(&f.remote)),
    var("response_code", |f| Field::Status(f.status)),
    var("scheme", |f| text(f.scheme)),
    var("size_download", |f| Field::Number(f.download_bytes)),
    var("size_header", |f| Field::Number(f.header_bytes)),
    var("size_request", |f| Field::Number(f.request_bytes)),
    var("size_upload", |f| Field::Number(f.upload_bytes)),
    var("speed_download", |f| Field::Number(f.speed(f.download_bytes))),
    var("speed_upload", |f| Field::Number(f.speed(f.upload_bytes))),
    var("ssl_verify_result", |f| Field::Number(f.verify_result.into())),
    var("time_appconnect", |f| Field::Time(f.times.handshake)),
    var("time_connect", |f| Field::Time(f.times.connect)),
    var("time_namelookup", |f| Field::Time(f.times.lookup)),
    var("time_posttransfer", |f| Field::Time(f.times.posttransfer)),
    var("time_pretransfer", |f| Field::Time(f.times.pretransfer)),
    var("time_redirect", |f| Field::Time(f.times.redirect)),
    var("time_starttransfer", |f| Field::Time(f.times.starttransfer)),
    var("time_total", |f| Field::Time(f.times.total)),
    var("url", |f| text(&f.url)),
    var("url.fragment", |f| part(&typed(f), fragment)),
    var("url.host", |f| part(&typed(f), host)),
    var("url.path", |f| part(&typed(f), path)),
    var("url.port", |f| part(&typed(f), port_of)),
    var("url.query", |f| part(&typed(f), query)),
    var("url.scheme", |f| part(&typed(f), scheme)),
    var("url_effective", |f| text(&f.url_effective)),
    var("urle.fragment", |f| part(&f.url_effective, fragment)),
    var("urle.host", |f| part(&f.url_effective, host)),
    var("urle.path", |f| part(&f.url_effective, path)),
    var("urle.port", |f| part(&f.url_effective, port_of)),
    var("urle.query", |f| part(&f.url_effective, query)),
    var("urle.scheme", |f| part(&f.url_effective, scheme)),
    var("urlnum", |f| Field::Number(f.urlnum as u64)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::get::facts::Times;

    fn facts() -> Facts {
        let header = |n: &str, v: &str| (n.to_owned(), v.as_bytes().to_vec());
        Facts {
            url: "h/a".into(),
            url_effective: "http://h/a".into(),
            urlnum: 3,
            method: "POST".into(),
            scheme: "HTTP",
            status: 200,
            http_version: Some("1.1"),
            headers: vec![
                header("Content-Type", "text/x"),
                header("X-A", "1"),
                header("Date", "\"t\""),
                header("x-a", "2"),
            ],
            connects: 1,
            retries: 2,
            proxied: true,
            remote: Some(("::1".into(), 8080)),
            download_bytes: 1000,
            times: Times {
                connect: Duration::from_micros(166),
                total: Duration::from_millis(500),
                ..Times::default()
            },
            ..Facts::default()
        }
    }

    fn filled(format: &str, facts: &Facts) -> (String, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let format = WriteOut::parse(format.as_bytes());
        format.fill(facts, &mut stdout, &mut stderr).unwrap();
        (
            String::from_utf8(stdout).unwrap(),
            String::from_utf8(stderr).unwrap(),
        )
    }

    #[test]
    fn formats() {
        // Each as curl 7.88 prints it.
        let cases = [
            ("", ""),
            ("100%% %Z %", "100% %Z %"),
            (r"a\nb\tc\rd\qe\\n\", "a\nb\tc\rd\\qe\\\n\\"),
            ("%{http_code}-%{response_code}", "200-200"),
            ("%{http_code", "%{http_code"),
            ("%%{http_code}", "%{http_code}"),
            (
                "%{time_connect} %{time_total} %{time_starttransfer}",
                "0.000166 0.500000 0.000000",
            ),
            (
                "%{time_namelookup} %{time_appconnect} %{time_redirect} %{num_redirects}|%{redirect_url}",
                "0.000000 0.000000 0.000000 0|",
            ),
            ("%{speed_download} %{size_download}", "2000 1000"),
            ("%{content_type}|%{errormsg}|%{exitcode}", "text/x||0"),
            (
                "%{remote_ip} %{remote_port} %{local_ip} %{local_port}",
                "::1 8080  0",
            ),
            ("%{scheme} %{http_version} %{method}", "HTTP 1.1 POST"),
            ("%{url} %{url_effective}", "h/a http://h/a"),
        ];
        for (format, expected) in cases {
            assert_eq!(
                filled(format, &facts()),
                (expected.into(), "".into()),
                "{format}"
            );
        }
    }

    #[test]
    fn errors_and_unknown_variables() {
        let failed = Facts {
            exit: Exit::NotConnected,
            error: Some("connect: refused".into()),
            ..Facts::default()
        };
        let format = "%{exitcode} %{errormsg} %{http_code} %{http_version}";
        let expected = ("7 connect: refused 000 0".into(), "".into());
        assert_eq!(filled(format, &failed), expected);
        let unknown = "crawler-cli: unknown --write-out variable: 'foo'\n";
        assert_eq!(filled("A%{foo}B", &failed), ("AB".into(), unknown.into()));
    }

    proptest::proptest! {
        #[test]
        fn any_format_can_be_filled(format: Vec<u8>) {
            let mut filled = Vec::new();
            let parsed = WriteOut::parse(&format);
            parsed.fill(&facts(), &mut filled, &mut io::sink()).unwrap();
            if !format.iter().any(|b| matches!(b, b'%' | b'\\')) {
                assert_eq!(filled, format);
            }
        }
    }
}
