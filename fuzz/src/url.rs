//! URLs, references, responses of proxies, and cookies.

use courser::CookieJar;
use courser::proto::steps::{Handshake, Socks5, SocksTarget, Tunnel};
use courser::proto::{Credentials, ProxyFault, Scheme, Url, resolve};

/// A base and, after the first line end, a reference. A printed URL is parsed as the same URL, and a reference resolves
/// to http, https or an error.
pub fn url(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n');
    let (base, reference) = data.split_at(end.unwrap_or(data.len()));
    let reference = reference.get(1..).unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(reference) {
        printed(text);
    }
    let Ok(base) = std::str::from_utf8(base) else {
        return;
    };
    printed(base);
    let Ok(from) = Url::parse(base) else {
        return;
    };
    let Ok(to) = resolve(base, reference) else {
        return;
    };
    let read = Url::parse(&to).expect("what a reference leads to is a URL");
    printed(&to);
    // Only a scheme in the reference can change the scheme.
    if read.scheme() != from.scheme() {
        let name = read.scheme().as_str().as_bytes();
        // Controls and blanks in front of the scheme are ignored, and so are line ends and tabs inside (WHATWG URL
        // §4.4).
        let says = reference.iter().filter(|byte| !b"\t\r\n".contains(byte));
        let says = says.copied().skip_while(|byte| *byte <= b' ');
        let says: Vec<u8> = says.take(name.len()).collect();
        assert!(says.eq_ignore_ascii_case(name), "{to}");
    }
    // No other scheme is taken for a path.
    let scheme = reference.trim_ascii().split(|&byte| byte == b':').next();
    if let Some([first, rest @ ..]) =
        scheme.filter(|name| name.len() < reference.trim_ascii().len())
        && first.is_ascii_alphabetic()
        && rest
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
    {
        let name = [&[*first], rest].concat();
        let known = [Scheme::Http, Scheme::Https].map(Scheme::as_str);
        assert!(
            known
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes())),
            "{to}"
        );
    }
}

/// Parses, prints and parses again. User information is not printed; everything else is the same.
fn printed(text: &str) {
    let Ok(url) = Url::parse(text) else {
        return;
    };
    let shown = url.to_string();
    let again = Url::parse(&shown).expect("what is printed is a URL");
    assert_eq!(again.to_string(), shown);
    assert!(url.same_origin(&again) && again.same_origin(&url));
    assert_eq!(again.userinfo(), None);
    assert_eq!(
        (url.scheme(), url.port(), url.ip()),
        (again.scheme(), again.port(), again.ip())
    );
    assert_eq!(url.target_parts().concat(), again.target_parts().concat());
    let mut target = Vec::new();
    url.push_target(&mut target);
    assert!(target.starts_with(b"/") && !target.contains(&b' '));
    let plain = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    assert!(target.iter().all(plain), "{target:?}");
}

/// Any bytes as the response of a proxy to CONNECT (first byte even) or of a SOCKS5 proxy (RFC 1928), with any cut.
pub fn proxy(data: &[u8]) {
    let Some((&[kind, cut], answer)) = data.split_first_chunk() else {
        return;
    };
    let credentials = (kind & 2 != 0).then(|| Credentials::new("user", "secret"));
    let end = |piece: usize| {
        if kind & 1 == 0 {
            tunnel(answer, piece, credentials.as_ref())
        } else {
            socks(answer, piece, credentials.as_ref())
        }
    };
    let (single, larger) = (end(1), end(usize::from(cut) + 2));
    // Bytes that arrive too early are surplus. Whether they do depends on the reads.
    assert!(
        larger == single || larger == "Surplus",
        "{single} by single bytes, {larger} by larger pieces"
    );
}

/// The end of the handshake as text: `Done`, `Pending`, or the fault.
fn tunnel(answer: &[u8], piece: usize, credentials: Option<&Credentials>) -> String {
    let mut tunnel = Tunnel::new("h:443", None, credentials, &[]).expect("all of it can be sent");
    loop {
        let sent = tunnel.poll_send().expect("no body goes wrong").len();
        if sent == 0 {
            break;
        }
        tunnel.handle_sent(sent);
    }
    for part in answer.chunks(piece) {
        match tunnel.handle_read(part) {
            Ok((used, Handshake::Pending)) => assert_eq!(used, part.len()),
            Ok((used, Handshake::Done)) => {
                assert_eq!(used, part.len());
                assert!((200..300).contains(&tunnel.response().status()));
                return "Done".to_owned();
            }
            Err(fault) => return fault_name(&fault),
        }
    }
    "Pending".to_owned()
}

fn socks(answer: &[u8], piece: usize, credentials: Option<&Credentials>) -> String {
    let mut socks = Socks5::new(SocksTarget::Name("h.example"), 443, credentials)
        .expect("all of it can be said");
    for part in answer.chunks(piece) {
        let sent = socks.poll_send().len();
        socks.handle_sent(sent);
        match socks.handle_read(part) {
            Ok((used, Handshake::Pending)) => assert_eq!(used, part.len()),
            Ok((used, Handshake::Done)) => {
                assert!(used <= part.len() && socks.poll_send().is_empty());
                assert!(agrees(answer), "{answer:?}");
                return "Done".to_owned();
            }
            Err(fault) => return fault_name(&fault),
        }
    }
    "Pending".to_owned()
}

/// Whether a SOCKS5 proxy accepts each step: the method, the credentials if it has requested them, and the request.
fn agrees(answer: &[u8]) -> bool {
    match answer {
        [5, 0, 5, 0, ..] => true,
        [5, 2, _, status, 5, reply, ..] => (*status, *reply) == (0, 0),
        _ => false,
    }
}

/// `Set-Cookie` lines from one server (RFC 6265). For any lines, the cookies that are sent back are a valid field of
/// bounded size, and other hosts do not get them.
pub fn cookies(data: &[u8]) {
    let here = Url::parse("https://a.b.example/x/y").expect("a URL");
    let jar = CookieJar::new();
    let values = data.split(|&byte| byte == b'\n');
    let count = values.clone().count();
    jar.store(&here, values);
    assert!(jar.len() <= count);
    let sent = |to: &str| {
        let mut line = Vec::new();
        let url = Url::parse(to).expect("a URL");
        let any = jar.push_header(&url, &mut line);
        assert_eq!(any, !line.is_empty());
        line
    };
    let line = sent("https://a.b.example/x/y");
    assert!(line.len() <= 2 * data.len() + 2 * count);
    let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    assert!(!line.iter().any(bad), "{line:?}");
    for elsewhere in [
        "https://c.test/x/y",
        "https://xb.example/x/y",
        "https://example/x/y",
    ] {
        assert_eq!(sent(elsewhere), b"", "{elsewhere}");
    }
    // The cookies of the jar can be copied into another jar.
    let again = CookieJar::new();
    for cookie in jar.cookies() {
        again.insert(&cookie);
    }
    let mut copy = Vec::new();
    again.push_header(&here, &mut copy);
    assert_eq!(copy, line);
}

fn fault_name(fault: &ProxyFault) -> String {
    assert!(!fault.to_string().is_empty());
    format!("{fault:?}")
}
