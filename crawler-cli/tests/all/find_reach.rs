//! How `crawler-cli find` reaches hosts: TLS, names, proxies, several hosts at the same time; and content codings.

use std::io::Write as _;
use std::process::Output;
use std::sync::{Arc, Barrier};

use crate::common::authority::{Authority, path_of};
use crate::common::{
    ClosedPort, Script, crawler, find, gzip, index, lines, page, response, stderr,
};
use rcgen::{CertificateParams, KeyPair};
use tempfile::NamedTempFile;

fn small_tree(request: &str) -> Vec<u8> {
    match request {
        "GET /pub/" => page(&["a/", "x.iso"]),
        "GET /pub/a/" => page(&["y.iso"]),
        _ => response(404, "", ""),
    }
}

/// The URLs of all entries of `small_tree` below this URL.
fn all_of(url: &str) -> Vec<String> {
    ["", "a/", "a/y.iso", "x.iso"]
        .map(|path| format!("{url}{path}"))
        .into()
}

/// Checks for exit code 1, no results, a single request, and this cause for the URL.
fn assert_unread(output: &Output, url: &str, cause: &str) {
    let stderr = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(output.stdout, b"");
    let line = format!("crawler-cli find: {url}: {cause}");
    assert!(stderr.starts_with(&line), "{line} in {stderr}");
    assert!(stderr.contains("; 1 request ("), "{stderr}");
    assert!(stderr.ends_with("; 1 UNREAD\n"), "{stderr}");
}

// ---- TLS

#[test]
fn https_is_searched_if_its_authority_is_trusted() {
    let authority = Authority::new("ours");
    let server = Script::start_tls(authority.server("127.0.0.1"), small_tree);
    let start = server.url("/pub/");
    assert!(start.starts_with("https://"));
    let file = authority.file();
    for args in [
        &[start.as_str(), "--cacert", path_of(&file)][..],
        &[&start, "-k"],
    ] {
        let output = find(args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(lines(&output.stdout), all_of(&start));
    }
    let asked = server.requests().len();
    assert_unread(
        &find(&[&start]),
        &start,
        "the certificate's issuer is not trusted\n",
    );
    // `--cacert` replaces the trusted authorities of the system by another one.
    let other = Authority::new("another one").file();
    assert_unread(
        &find(&[&start, "--cacert", path_of(&other)]),
        &start,
        "the certificate's issuer is not trusted\n",
    );
    assert_eq!(server.requests().len(), asked);
}

// ---- names

/// No name server is asked for `.invalid` (RFC 6761 §6.4), and no attempt is repeated.
#[test]
fn a_nonexistent_name_is_reported_at_once_and_others_are_searched() {
    for start in [
        "http://nowhere.invalid/pub/",
        "https://nowhere.invalid/pub/",
    ] {
        assert_unread(&find(&[start]), start, "no such host\n");
    }
    let server = Script::start(small_tree);
    let output = find(&["http://nowhere.invalid/", &server.url("/pub/")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output.stdout), all_of(&server.url("/pub/")));
}

// ---- several hosts

/// Each host delays its first response until both hosts have received a request.
#[test]
fn hosts_are_searched_at_the_same_time_each_with_its_own_limit() {
    let both_asked = Arc::new(Barrier::new(2));
    let names: Arc<Vec<String>> = Arc::new((0..50).map(|i| format!("d{i}/")).collect());
    let servers = [(); 2].map(|()| {
        let (both_asked, names) = (Arc::clone(&both_asked), Arc::clone(&names));
        Script::start(move |request| match request {
            "GET /" => {
                both_asked.wait();
                page(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
            _ => page(&["f"]),
        })
    });
    let starts = servers.each_ref().map(|server| server.url("/"));
    let output = find(&[&starts[0], &starts[1], "-type", "f", "-j", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stderr = stderr(&output);
    assert!(
        stderr.starts_with("100 found among 100 files and 102 directories in "),
        "{stderr}"
    );
    assert!(stderr.contains("; 102 requests ("), "{stderr}");
    for (server, start) in servers.iter().zip(&starts) {
        let found = lines(&output.stdout);
        let of_it = found.iter().filter(|url| url.starts_with(start.as_str()));
        assert_eq!(of_it.count(), 50);
        assert_eq!(server.requests().len(), 51);
        assert!(server.most_at_once() <= 3, "{}", server.most_at_once());
    }
}

// ---- content codings

const GZIPPED: &str = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";

#[test]
fn a_gzipped_listing_is_read() {
    let server = Script::start(|request| match request {
        "GET /" => response(200, GZIPPED, gzip(index(&["a/", "x.iso"]))),
        _ => page(&["y.iso"]),
    });
    let start = server.url("/");
    let output = find(&[&start]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout), all_of(&start));
    for head in server.heads() {
        let offer = "\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n";
        assert!(head.contains(offer), "{head}");
    }
}

/// Fails if what was decoded up to the limit is taken for the listing.
#[test]
fn a_gzipped_listing_beyond_the_limit_is_an_error() {
    let names: Vec<String> = (0..200).map(|i| format!("a-long-name-{i}")).collect();
    let listing = index(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let whole = gzip(&listing);
    assert!(whole.len() < 2048 && listing.len() > 2048);
    let server = Script::start(move |_| response(200, GZIPPED, &whole));
    assert_unread(
        &find(&[&server.url("/"), "--max-body", "2K"]),
        &server.url("/"),
        "the page has more than 2048 bytes: --max-body 4K may read it\n",
    );
}

// ---- proxies

#[test]
fn http_goes_through_the_proxy_of_the_option_or_the_environment() {
    // The proxy answers itself, as if from a cache; the host does not exist.
    let proxy = Script::start(|request| match request.split_once("//mirror.example") {
        Some(("GET http:", path)) => small_tree(&format!("GET {path}")),
        _ => response(400, "", ""),
    });
    let address = proxy.address.to_string();
    let start = "http://mirror.example/pub/";
    let by_option = find(&["-x", &address, start]);
    let mut command = crawler(&["find", start]);
    let by_environment = command.env("http_proxy", &address).output().expect("runs");
    for output in [by_option, by_environment] {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(lines(&output.stdout), all_of(start));
    }
    assert_eq!(proxy.requests().len(), 4);

    let direct = Script::start(small_tree);
    let start = direct.url("/pub/");
    let output = find(&[&start, "-x", &address, "--noproxy", "127.0.0.1"]);
    assert_eq!(lines(&output.stdout), all_of(&start));
    assert_eq!(proxy.requests().len(), 4);
}

#[test]
fn an_unreachable_proxy_is_distinguished_from_the_host() {
    let closed = ClosedPort::new();
    let gone = closed.address();
    let start = "http://127.0.0.1:1/";
    let args = [start, "--retries", "0", "-x", &gone.to_string()];
    let cause = format!("through http://{gone}: connecting failed: Connection refused");
    assert_unread(&find(&args), start, &cause);

    let cause = "through socks5h://nowhere.invalid:1080: the proxy's name: no such host\n";
    let args = [start, "-x", "socks5h://u:secret@nowhere.invalid"];
    assert_unread(&find(&args), start, cause);
}

/// Whether each head has this line.
fn all_have(heads: &[String], line: &str) -> bool {
    !heads.is_empty()
        && heads
            .iter()
            .all(|head| head.contains(&format!("\r\n{line}\r\n")))
}

#[test]
fn headers_credentials_and_cookies_never_leave_their_hosts() {
    let other = Script::start(small_tree);
    let elsewhere = other.url("/pub/");
    let redirect = format!("Location: {elsewhere}\r\n");
    let own = Script::start(move |request| match request {
        "GET /pub/" => page(&["a/", "moved/"]),
        "GET /pub/moved/" => response(302, &redirect, ""),
        _ => page(&[]),
    });
    let start = own.url("/pub/");
    let output = find(&[
        &start,
        "--links",
        "page",
        "-H",
        "Accept: text/x",
        "-u",
        "me:secret",
        "-b",
        "a=1",
        "-b",
        "b=2",
    ]);
    let heads = own.heads();
    assert!(heads.len() >= 3, "{heads:?} {}", stderr(&output));
    let basic = "Authorization: Basic bWU6c2VjcmV0";
    for line in ["Accept: text/x", basic, "Cookie: a=1; b=2"] {
        assert!(all_have(&heads, line), "{line}: {heads:?}");
    }
    assert!(
        heads
            .iter()
            .all(|head| head.matches("Accept: ").count() == 1),
        "{heads:?}"
    );
    assert_eq!(other.requests(), [""; 0]);
}

#[test]
fn a_client_certificate_is_shown_to_the_host_of_the_start() {
    let authority = Authority::new("test authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["client".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &authority.0).expect("a certificate");
    let mut client = NamedTempFile::new().expect("a file");
    let pem = certificate.pem() + &key.serialize_pem();
    client.write_all(pem.as_bytes()).expect("written");
    let server = Script::start_tls(authority.asking_server("127.0.0.1"), small_tree);
    let (ca, url) = (authority.file(), server.url("/pub/"));
    let search =
        |more: &[&str]| find(&[&[&url, "--retries", "0", "--cacert", path_of(&ca)], more].concat());
    let output = search(&["-E", path_of(&client)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout), all_of(&url));
    let without = search(&[]);
    assert_eq!(without.status.code(), Some(1), "{}", stderr(&without));
    let missing = search(&["-E", "/no/such.pem"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        stderr(&missing).contains("/no/such.pem"),
        "{}",
        stderr(&missing)
    );
    let alone = search(&["--key", path_of(&client)]);
    assert_eq!(alone.status.code(), Some(2));
}
