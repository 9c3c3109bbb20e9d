//! A small HTTP/1.1 server for the sample mirror, on a free port of the loopback interface: nginx's index pages, a
//! redirect for a directory without its `/`, keep-alive. One thread per connection; runs until the process ends.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use listing::path::NOT_UNRESERVED;
use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::tree::{self, Item};

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    served: Arc<Served>,
}

#[derive(Debug, Default)]
struct Served {
    connections: AtomicUsize,
    requests: AtomicU64,
}

impl Server {
    /// Listens and serves in background threads until the process ends.
    ///
    /// # Errors
    /// No socket or no thread could be created.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let served = Arc::new(Served::default());
        let shared = Arc::clone(&served);
        thread::Builder::new()
            .name("mirror".into())
            .spawn(move || accept(&listener, &shared))?;
        Ok(Self { address, served })
    }

    /// The URL of the mirror's root.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Requests received so far.
    pub fn requests(&self) -> u64 {
        self.served.requests.load(Ordering::Relaxed)
    }
}

fn accept(listener: &TcpListener, served: &Arc<Served>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // The process is probably out of file descriptors: wait until connections close.
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        if served.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            served.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let shared = Arc::clone(served);
        let spawned = thread::Builder::new()
            .stack_size(128 * 1024)
            .spawn(move || {
                // An error on one connection, such as a client that disconnects, does not matter to others.
                let _ = converse(stream, &shared.requests);
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            });
        if spawned.is_err() {
            served.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Serves one connection until the client closes it or is silent for [`IDLE`].
fn converse(stream: TcpStream, requests: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut response = Vec::new();
    while let Some(request) = read_head(&mut reader)? {
        requests.fetch_add(1, Ordering::Relaxed);
        response.clear();
        respond(&request, &mut response);
        writer.write_all(&response)?;
        if request.close {
            break;
        }
    }
    Ok(())
}

/// The parts of a request that the server uses.
#[derive(Debug, Default, Eq, PartialEq)]
struct Request {
    method: String,
    target: String,
    close: bool,
}

/// Reads the head of the next request; `None` at the end of the stream.
fn read_head(reader: &mut impl io::BufRead) -> io::Result<Option<Request>> {
    let mut head = reader.take(MAX_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        target: words.next().unwrap_or_default().to_owned(),
        close: words.next() != Some("HTTP/1.1"),
    };
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            return Ok(Some(request));
        }
        // Bodies are not read: a body would be taken for the next request, so the connection closes.
        request.close |= header == "connection: close" || header.starts_with("content-length:");
    }
}

fn respond(request: &Request, out: &mut Vec<u8>) {
    let path = request.target.split('?').next().unwrap_or_default();
    let decoded: Vec<_> = path
        .split('/')
        .map(|s| percent_decode_str(s).decode_utf8_lossy())
        .collect();
    // "/a/b/" splits into "", "a", "b", "".
    let segments = match decoded.as_slice() {
        [first, inner @ .., last] if first.is_empty() && last.is_empty() => Some(inner),
        _ => None,
    };
    let listed = segments.and_then(|segments| items(segments));
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return answer(
            request,
            "405 Method Not Allowed",
            "Allow: GET, HEAD\r\n",
            "",
            out,
        );
    }
    if let Some(listed) = listed {
        let page = index(&decoded.join("/"), &listed);
        return answer(request, "200 OK", "Content-Type: text/html\r\n", &page, out);
    }
    let below_root = decoded.get(1..).unwrap_or_default();
    let parent = below_root
        .split_last()
        .and_then(|(name, parents)| items(parents)?.into_iter().find(|item| item.name == *name));
    match parent {
        Some(item) if item.is_directory => {
            let location = format!("Location: {path}/\r\n");
            answer(request, "301 Moved Permanently", &location, "", out);
        }
        Some(item) => {
            answer(
                request,
                "200 OK",
                "Content-Type: application/octet-stream\r\nLast-Modified: Fri, 02 Jan 2026 03:04:00 GMT\r\n",
                &content(&item.name),
                out,
            );
        }
        None => answer(
            request,
            "404 Not Found",
            "Content-Type: text/plain\r\n",
            "not here\n",
            out,
        ),
    }
}

/// The entries of the directory with these segments.
fn items(segments: &[Cow<'_, str>]) -> Option<Vec<Item>> {
    let segments: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
    tree::items(&segments)
}

fn answer(request: &Request, status: &str, headers: &str, body: &str, out: &mut Vec<u8>) {
    let connection = if request.close { "close" } else { "keep-alive" };
    let length = body.len();
    out.extend_from_slice(
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: {connection}\r\n\r\n")
            .as_bytes(),
    );
    if request.method != "HEAD" {
        out.extend_from_slice(body.as_bytes());
    }
}

/// The content of a file.
fn content(name: &str) -> String {
    format!("This is {name} of the sample mirror.\n")
}

/// An index page as nginx writes it.
fn index(path: &str, items: &[Item]) -> String {
    let title = escape_html(path);
    let mut page = format!(
        "<html>\r\n<head><title>Index of {title}</title></head>\r\n<body>\r\n\
         <h1>Index of {title}</h1><hr><pre><a href=\"../\">../</a>\r\n"
    );
    for item in items {
        let slash = if item.is_directory { "/" } else { "" };
        // As nginx encodes it.
        let href = utf8_percent_encode(&item.name, NOT_UNRESERVED);
        let cut: String = item.name.chars().take(NAME_WIDTH).collect();
        let pad = NAME_WIDTH + 1 - cut.chars().count();
        let size = match item.is_directory {
            true => "-".to_owned(),
            false => content(&item.name).len().to_string(),
        };
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "<a href=\"{href}{slash}\">{}{slash}</a>{:pad$}02-Jan-2026 03:04 {size:>19}\r\n",
            escape_html(&cut),
            ""
        );
    }
    page.push_str("</pre><hr></body>\r\n</html>\r\n");
    page
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const NAME_WIDTH: usize = 50;
const MAX_CONNECTIONS: usize = 512;
const MAX_HEAD: u64 = 16 * 1024;
const IDLE: Duration = Duration::from_secs(60);
