//! The fuzz targets on the stable toolchain: over the committed corpus, and over random bytes.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

fn replay(target: &str, body: fn(&[u8])) {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("a readable folder").path();
        let data = fs::read(&path).expect("a readable file");
        println!("{}", path.display());
        body(&data);
        files += 1;
    }
    assert!(files > 10, "only {files} files in {}", corpus.display());
}

#[test]
fn response() {
    replay("response", fuzz::response);
}

#[test]
fn chunked() {
    replay("chunked", fuzz::chunked);
}

/// Bytes that come near to HTTP more often than chance would.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn responses_near_http(data in near_http()) {
        fuzz::response(&data);
    }

    #[test]
    fn chunks_near_http(data in near_http()) {
        fuzz::chunked(&data[4..]);
    }
}
