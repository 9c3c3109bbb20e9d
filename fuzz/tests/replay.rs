//! Runs the fuzz targets on the stable toolchain with the committed corpus and with random bytes.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

type Target = fn(&[u8]);

#[test]
fn targets_with_their_corpora() {
    let targets: [(&str, Target); 11] = [
        ("response", fuzz::response),
        ("chunked", fuzz::chunked),
        ("coding", fuzz::coding),
        ("url", fuzz::url),
        ("cookies", fuzz::cookies),
        ("proxy", fuzz::proxy),
        ("fields", fuzz::fields),
        ("pipeline", fuzz::pipeline),
        ("exchange", fuzz::exchange),
        ("links", fuzz::links),
        ("listing", fuzz::listing),
    ];
    for (target, body) in targets {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{target}"));
        let mut files = 0;
        for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
            let path = entry.expect("a readable folder").path();
            let data = fs::read(&path).expect("a readable file");
            println!("{}", path.display());
            body(&data);
            files += 1;
        }
        assert!(files > 5, "only {files} files in {}", corpus.display());
    }
}

/// Random texts that resemble URLs and references.
fn near_urls() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "http", "https", "ftp", ":", "//", "/", "..", ".", "?", "#", "@", "h", "[::1]",
            "1.2.3.4", ":80", "%41", "\\", " ", "\t", "user:pw@", "a",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..2),
    ];
    let side = || prop::collection::vec(piece.clone(), 0..8).prop_map(|pieces| pieces.concat());
    let base = prop_oneof![
        prop::sample::select(vec!["http://h/a/b?c", "https://u:p@h:1/", "http://[::1]"])
            .prop_map(|text| text.as_bytes().to_vec()),
        side(),
    ];
    (base, side()).prop_map(|(base, reference)| [&base[..], b"\n", &reference].concat())
}

/// Random bytes that resemble HTTP.
fn near_http() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 404 No\r\n",
            "HTTP/1.1 100 C\r\n\r\n",
            "\r\n",
            "\n",
            "\r\n\r\n",
            "0\r\n\r\n",
            "Content-Length: 3\r\n",
            "Content-Length: 3, 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Connection: close\r\n",
            " folded\r\n",
            "3\r\nabc\r\n",
            "A: b\r\n",
            "5;x=\"y\"\r\nhello\r\n",
            "ffffffffffffffff\r\n",
            "abc",
            ":",
            ";",
            "\"",
            "\0",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let pieces = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    (any::<[u8; 4]>(), pieces).prop_map(|(choice, pieces)| [&choice[..], &pieces].concat())
}

/// Responses, most of them valid, so that several calls get one.
const ANSWERS: [&str; 8] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "HTTP/1.1 204 Nothing\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.0 200 OK\r\n\r\nall",
    "garbage\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn lines_of_cookies(data in "([a-c=; \"\n\t\r,]|Path=/|Domain=|Max-Age=|[0-9]|b\\.example|Secure|\\PC){0,24}") {
        fuzz::cookies(data.as_bytes());
    }

    #[test]
    fn urls_and_references(data in near_urls()) {
        fuzz::url(&data);
    }

    #[test]
    fn proxies_near_http(data in near_http()) {
        fuzz::proxy(&data[2..]);
    }

    #[test]
    fn proxies_near_socks(
        choice in any::<[u8; 2]>(),
        answer in prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..30),
    ) {
        fuzz::proxy(&[&[choice[0] | 1, choice[1]], &answer[..]].concat());
    }

    #[test]
    fn responses_near_http(data in near_http()) {
        fuzz::response(&data);
    }

    #[test]
    fn pipelines_of_answers(
        choice in any::<[u8; 4]>(),
        answers in prop::collection::vec(prop::sample::select(ANSWERS.to_vec()), 0..9),
        cut in 0usize..40,
    ) {
        let whole = answers.concat();
        let kept = whole.len() - cut.min(whole.len()) * usize::from(choice[3] % 3 == 0);
        fuzz::pipeline(&[&choice[..], &whole.as_bytes()[..kept]].concat());
    }

    #[test]
    fn pipelines_near_http(data in near_http()) {
        fuzz::pipeline(&data);
    }

    #[test]
    fn fields_near_dates(
        now in any::<[u8; 8]>(),
        text in "(Sun|Mon|[A-Z][a-z]{2}), [0-3][0-9] (Jan|Nov|Feb) (19|20)[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-5][0-9] GMT|[0-9 ]{0,24}|\\PC{0,9}",
        kept in "(\n|timeout=|[0-9]{1,11}|,| |max=|[+\"a-z]){0,12}",
    ) {
        fuzz::fields(&[&now[..], text.as_bytes(), b"\n", kept.as_bytes()].concat());
    }

    #[test]
    fn pages_near_listings(
        choice in any::<[u8; 2]>(),
        page in "(<a href=\"|<A HREF='|\">x</a>|'>|<base href=|/|\\.|%2[eEfF]|%00|%[0-9a-f]{2}|&amp;|\\?C=N|#|[a-c]|http://h|:|\\\\|<script>|</html>|\\PC){0,30}",
    ) {
        fuzz::listing(&[&choice[..], page.as_bytes()].concat());
    }

    #[test]
    fn documents_near_markdown(
        choice in 0u8..4,
        text in "(\\[|\\]|\\(|\\)|!|<|>|\n|\r\n|\n\n|> |- |    |`|\\*|_|\\\\|&amp;|&|\\||\\|-\\|\n|# |---\n|https://|www\\.|a\\.b|\\[a\\]: |\\[\\^1\\]|<a href='x'>|</a>|<img src=i>|<!-- |-->|crawler-check-disable|é|\\PC){0,30}",
    ) {
        fuzz::links(&[&[0, choice][..], text.as_bytes()].concat());
    }

    #[test]
    fn documents_near_html(
        choice in 0u8..4,
        text in "(<a href=\"|<A HREF='|<a href=|<img src=| srcset='|\"|'|>|</a>|<base href=|<template>|</template>|<meta http-equiv=refresh content='|0;url=|&amp;|&quot;|&#|<!-- |-->|crawler-check-disable|-line|<svg>|<title>|<script|/>|\n|\r|,| |x|é|\\PC){0,30}",
    ) {
        fuzz::links(&[&[1, choice][..], text.as_bytes()].concat());
    }

    #[test]
    fn chunks_near_http(data in near_http()) {
        fuzz::chunked(&data[4..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn exchanges(
        choices in prop::collection::vec(prop_oneof![2 => Just(0), 3 => any::<u8>()], 12),
        script in prop::collection::vec(prop_oneof![3 => 0u8..96, 2 => 200u8..228, 1 => any::<u8>()], 0..60),
    ) {
        fuzz::exchange(&[choices, script].concat());
    }

    #[test]
    fn codings(
        choice in any::<[u8; 6]>(),
        payload in prop::collection::vec(prop_oneof![3 => Just(b'a'), 1 => any::<u8>()], 0..600),
    ) {
        fuzz::coding(&[&choice[..], &payload].concat());
    }
}
