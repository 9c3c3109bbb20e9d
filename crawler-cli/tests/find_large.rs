//! `crawler-cli find` with listings that are too large for memory. The server makes them while it sends them.

mod common;

use std::fs;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{crawler, find, lines, read_head, stderr};

/// A server of one directory with many files.
struct Large {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Large {
    /// `cut`: how many answers are cut before one is whole.
    fn start(files: usize, cut: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    if !read_head(&mut reader).is_empty() {
                        let number = requests.fetch_add(1, Ordering::SeqCst);
                        // The client may have closed the connection.
                        let _ = answer(&stream, files, number >= cut);
                    }
                });
            }
        });
        Self { address, requests }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

/// The listing as nginx writes it, without a length.
fn answer(stream: &TcpStream, files: usize, is_whole: bool) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, stream);
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n\
         <html>\r\n<h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n"
    )?;
    for number in 0..files {
        writeln!(out, "<a href=\"f{number}\">f</a>")?;
    }
    if is_whole {
        write!(out, "</pre><hr></body></html>\r\n")?;
    }
    out.flush()
}

/// The first request shows that the page has too many links; the answer to the second is cut.
#[test]
#[ignore = "takes a minute in a debug build; the unit tests of streams do the same on a smaller scale"]
fn a_listing_with_more_than_a_million_entries_is_read_as_a_stream() {
    const FILES: usize = 1_000_200;
    let server = Large::start(FILES, 2);
    let start = server.url("");
    let output = find(&[&start, "-type", "f", "-name", "*99"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = (0..FILES).filter(|number| number % 100 == 99);
    let mut expected: Vec<String> = expected.map(|n| server.url(&format!("f{n}"))).collect();
    expected.sort();
    assert!(lines(&output.stdout) == expected);
    assert_eq!(server.requests.load(Ordering::SeqCst), 3);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn five_million_entries_in_one_page_fit_into_256_mib() {
    const FILES: usize = 5_000_000;
    let server = Large::start(FILES, 0);
    let mut search = crawler(&["find", &server.url(""), "-type", "f"]);
    let mut search = search.stdout(Stdio::piped()).spawn().expect("runs");
    let status = format!("/proc/{}/status", search.id());
    let out = BufReader::new(search.stdout.take().expect("piped"));
    let (mut found, mut memory) = (0, 0);
    for line in out.lines() {
        line.expect("UTF-8");
        found += 1;
        if found % 10_000 == 0
            && let Ok(text) = fs::read_to_string(&status)
        {
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
            memory = memory.max(peak.and_then(|kib| kib.parse().ok()).unwrap_or(0));
        }
    }
    assert!(search.wait().expect("it ends").success());
    assert_eq!(found, FILES);
    assert!((1..=256 * 1024).contains(&memory), "{memory} KiB");
}
