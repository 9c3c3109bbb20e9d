//! Which cookies are sent to which URL, how long they are kept, and how many.

use super::*;

fn url(text: &str) -> Url<'_> {
    Url::parse(text).unwrap()
}

fn set(jar: &CookieJar, from: &str, value: &str) {
    jar.store(&url(from), [value.as_bytes()]);
}

fn sent(jar: &CookieJar, to: &str) -> String {
    let mut out = b"x".to_vec();
    let any = jar.push_header(&url(to), &mut out);
    assert_eq!(any, out.len() > 1);
    String::from_utf8(out[1..].to_vec()).unwrap()
}

/// The rows of a table, without what explains them.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    let rows = table.lines().map(str::trim);
    rows.filter(|row| !row.is_empty() && !row.starts_with('#'))
}

#[test]
fn which_cookie_goes_where() {
    // From where, `Set-Cookie`, to where, and `not` if it is not sent there.
    for row in rows(
        r#"
        http://h.x/ [a=b] http://h.x/
        http://H.x/ [a=b] http://h.X:81/p?q
        http://u:p@h.x?q [a=b] https://h.x/
        http://h.x/ [a=b] http://www.h.x/ not
        http://h.x/ [a=b] http://h.x./ not
        http://h.x/ [a=b; Domain=h.x] http://www.h.x/
        http://h.x/ [a=b; Domain=.H.X] http://a.www.h.x/
        http://h.x/ [a=b; Domain=h.x] http://nh.x/ not
        http://www.h.x/ [a=b; Domain=h.x] http://h.x/
        http://www.h.x/ [a=b; Domain=g.x] http://g.x/ not
        # A domain of one label is a public suffix, unless the label is the host itself.
        http://h.x/ [a=b; Domain=x] http://h.x/ not
        http://h.x/ [a=b; Domain=x] http://g.x/ not
        http://localhost/ [a=b; Domain=localhost] http://localhost/
        http://h.co.uk/ [a=b; Domain=co.uk] http://g.co.uk/ not
        # IP addresses have no parent domains.
        http://127.0.0.1/ [a=b] http://127.0.0.1:99/
        http://127.0.0.1/ [a=b; Domain=0.0.1] http://127.0.0.1/ not
        http://[::1]/ [a=b] http://[0::1]/
        # Paths.
        http://h.x/a/b [a=b] http://h.x/a/c
        http://h.x/a/b [a=b] http://h.x/ac not
        http://h.x/a/b [a=b; Path=/] http://h.x/
        http://h.x/ [a=b; Path=/p] http://h.x/p/q
        http://h.x/ [a=b; Path=/p] http://h.x/pq not
        # Secure.
        https://h.x/ [a=b; Secure] https://h.x/
        https://h.x/ [a=b; Secure] http://h.x/ not
        http://h.x/ [a=b; Secure] https://h.x/ not
        http://localhost/ [a=b; Secure] http://localhost/
        http://127.0.0.1/ [a=b; Secure] http://127.0.0.1/
        https://h.x/ [a=b; HttpOnly; SameSite=Strict] http://h.x/
        https://h.x/ [__Secure-a=b] https://h.x/ not
        https://h.x/ [__Secure-a=b; Secure] https://h.x/
        https://h.x/ [__host-a=b; Secure] https://h.x/ not
        https://h.x/ [__Host-a=b; Secure; Path=/] https://h.x/
        https://h.x/ [__Host-a=b; Secure; Path=/; Domain=h.x] https://h.x/ not
        # Time.
        http://h.x/ [a=b; Max-Age=100] http://h.x/
        http://h.x/ [a=b; Max-Age=99999999999999999999] http://h.x/
        http://h.x/ [a=b; Max-Age=0] http://h.x/ not
        http://h.x/ [a=b; Expires=Wed, 21 Oct 2015 07:28:00 GMT] http://h.x/ not
        http://h.x/ [a=b; Expires=Fri, 01 Jan 2099 00:00:00 GMT] http://h.x/
        # Malformed.
        http://h.x/ [] http://h.x/ not
        http://h.x/ [a] http://h.x/ not
        http://h.x/ [a=b\x01c] http://h.x/ not
        http://h.x/ [a=b\tc] http://h.x/ not
        http://h.x/ [a="b c"] http://h.x/
        "#,
    ) {
        let (from, rest) = row.split_once(" [").unwrap();
        let (value, to) = rest.split_once("] ").unwrap();
        let value = value.replace("\\x01", "\x01").replace("\\t", "\t");
        let goes = !to.ends_with(" not");
        let to = to.trim_end_matches(" not");
        let jar = CookieJar::new().with_public_suffixes(|name| name == "co.uk");
        set(&jar, from, &value);
        assert_eq!(!sent(&jar, to).is_empty(), goes, "{row}");
    }
    let jar = CookieJar::new();
    jar.store(
        &url("http://h.x"),
        [&b"a=\xff"[..], b"b=\xc3\xa4", b"c=\"d\""],
    );
    assert_eq!(sent(&jar, "http://h.x/"), "b=ä; c=\"d\"");
}

#[test]
fn replaced_deleted_and_in_order() {
    let jar = CookieJar::new();
    let from = "http://www.h.x/p/";
    for value in [
        "a=1",
        "b=2; Path=/",
        "c=3; Domain=h.x; Path=/",
        "d=4",
        "a=5; Path=/",
    ] {
        set(&jar, from, value);
    }
    assert_eq!(sent(&jar, from), "a=1; d=4; b=2; c=3; a=5");
    set(&jar, from, "a=6");
    assert_eq!(sent(&jar, from), "a=6; d=4; b=2; c=3; a=5");
    set(&jar, from, "a=; Max-Age=0");
    assert_eq!(sent(&jar, from), "d=4; b=2; c=3; a=5");
    assert_eq!(sent(&jar, "http://h.x/"), "c=3");
    // Over plain http, a Secure cookie is neither replaced nor deleted.
    set(&jar, "https://h.x/", "s=1; Secure");
    set(&jar, "http://h.x/", "s=2");
    set(&jar, "http://h.x/", "s=2; Max-Age=0");
    assert_eq!(sent(&jar, "https://h.x/"), "c=3; s=1");
    assert_eq!(jar.len(), 5);
    let handle = jar.clone();
    handle.clear();
    assert!(jar.is_empty());
    assert_eq!(sent(&jar, from), "");
}

/// A server, or an attacker, on plain http cannot put a cookie of its own beside a `Secure` cookie that is sent to the
/// same URLs (draft-ietf-httpbis-rfc6265bis §5.7, step 11).
#[test]
fn secure_cookies_are_not_shadowed() {
    // What `https://h.x/` has set, from where another one comes, that one, and `not` if it is not kept.
    for row in rows(
        r#"
        # The same domain and path, and more exact paths.
        [s=1; Secure; Path=/login] http://h.x/ [s=2; Path=/login] not
        [s=1; Secure; Path=/login] http://h.x/ [s=2; Path=/login/en] not
        [s=1; Secure; Path=/] http://h.x/ [s=2; Path=/a] not
        [s=1; Secure; Path=/a/] http://h.x/ [s=2; Path=/a/b] not
        # Paths to which the other cookie is not sent.
        [s=1; Secure; Path=/login] http://h.x/ [s=2; Path=/]
        [s=1; Secure; Path=/login] http://h.x/ [s=2; Path=/loginhelper]
        [s=1; Secure; Path=/a/] http://h.x/ [s=2; Path=/a]
        # Domains above and below, for this host alone or not.
        [s=1; Secure] http://h.x/ [s=2; Domain=h.x] not
        [s=1; Secure; Domain=h.x] http://h.x/ [s=2] not
        [s=1; Secure; Domain=h.x] http://www.h.x/ [s=2] not
        [s=1; Secure; Domain=h.x] http://a.www.h.x/ [s=2; Domain=www.h.x] not
        [s=1; Secure] http://www.h.x/ [s=2] not
        [s=1; Secure] http://www.h.x/ [s=2; Max-Age=0] not
        # Names that only end alike, and other names of cookies.
        [s=1; Secure] http://nh.x/ [s=2]
        [s=1; Secure] http://h.x/ [S=2]
        # Cookies that are not `Secure`, and safe connections.
        [s=1] http://www.h.x/ [s=2; Path=/a]
        [s=1; Secure] https://h.x/ [s=2; Path=/a]
        "#,
    ) {
        let (kept, rest) = row[1..].split_once("] ").unwrap();
        let (from, rest) = rest.split_once(" [").unwrap();
        let (new, not) = rest.split_once(']').unwrap();
        let jar = CookieJar::new();
        set(&jar, "https://h.x/", kept);
        let before = jar.len();
        set(&jar, from, new);
        assert_eq!(jar.len() > before, not.is_empty(), "{row}");
    }
    // From below to above.
    for (host, set_it) in [("www.h.x", false), ("a.www.h.x", false), ("nh.x", true)] {
        let jar = CookieJar::new();
        set(&jar, &format!("https://{host}/"), "s=1; Secure");
        set(&jar, "http://h.x/", "s=2; Domain=h.x");
        assert_eq!(jar.len() == 2, set_it, "{host}");
    }
    // An expired cookie forbids no other cookie.
    let jar = CookieJar::new();
    set(&jar, "https://h.x/", "s=1; Secure; Max-Age=0");
    set(&jar, "http://h.x/", "s=2");
    assert_eq!(sent(&jar, "http://h.x/"), "s=2");
}

#[test]
fn nothing_grows_without_end() {
    let limit = |n| NonZeroUsize::new(n).unwrap();
    let jar = CookieJar::new().with_limits(CookieLimits {
        per_domain: limit(3),
        total: limit(20),
        cookie_bytes: 50,
        header_bytes: 20,
    });
    for n in 0..10 {
        set(&jar, "http://h.x/", &format!("n{n}=v"));
    }
    assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n8=v; n9=v");
    set(&jar, "http://h.x/", &format!("n7={}", "v".repeat(60)));
    assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n8=v; n9=v");
    // A cookie that does not fit is left out; a shorter cookie after it is still sent.
    set(&jar, "http://h.x/", "n8=vvvvvvvvvvvvvvvvv");
    assert_eq!(sent(&jar, "http://h.x/"), "n7=v; n9=v");
    for n in 0..1000 {
        set(&jar, &format!("http://h{n}.y/"), "a=b");
        assert!(jar.len() <= 20);
    }
    assert!(jar.len() >= 18);
    assert_eq!(sent(&jar, "http://h.x/"), "");
    assert_eq!(sent(&jar, "http://h999.y/"), "a=b");
}

#[test]
fn values_go_out_and_in_again() {
    let jar = CookieJar::new();
    let from = "https://www.h.x/p/q";
    for value in [
        "a=1; Domain=h.x; Path=/",
        "b=2; Secure; HttpOnly; Expires=Tue, 01 Jan 2099 00:00:00 GMT",
    ] {
        set(&jar, from, value);
    }
    let cookies: Vec<_> = jar.cookies().collect();
    let [a, b] = &cookies[..] else {
        panic!("{cookies:?}");
    };
    assert_eq!((&*a.name, &*a.value, &*a.domain), ("a", "1", "h.x"));
    assert_eq!((a.subdomains, &*a.path, a.expires), (true, "/", None));
    assert_eq!(
        (&*b.domain, b.subdomains, &*b.path),
        ("www.h.x", false, "/p")
    );
    let end = UNIX_EPOCH + Duration::from_secs(4_070_908_800);
    assert_eq!((b.secure, b.http_only, b.expires), (true, true, Some(end)));
    let copy = CookieJar::new();
    assert!(cookies.iter().all(|cookie| copy.insert(cookie)));
    assert!(copy.cookies().eq(cookies.iter().cloned()));
    let edits: [fn(&mut Cookie); 5] = [
        |cookie| cookie.path = "p".into(),
        |cookie| cookie.name = "a=".into(),
        |cookie| cookie.value = "1; Domain=g.x".into(),
        |cookie| cookie.domain = "a b".into(),
        |cookie| cookie.expires = Some(UNIX_EPOCH + Duration::from_secs(1)),
    ];
    for edit in edits {
        let mut bad = a.clone();
        edit(&mut bad);
        assert!(!copy.insert(&bad), "{bad:?}");
    }
}

#[test]
fn no_value_is_shown() {
    let jar = CookieJar::new();
    set(&jar, "http://h.x/", "a=secret");
    assert!(!format!("{jar:?}").contains("secret"));
    let cookies: Vec<_> = jar.cookies().collect();
    assert!(!format!("{cookies:?}").contains("secret"));
}
