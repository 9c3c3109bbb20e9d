//! The parser of directory listings with captured pages of real servers, enlarged by further rows.
//!
//! Bars: 200 MB/s on one core, and 40 µs for a listing of nginx or Apache with 22 entries.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use listing::{PageLimits, parse};
use memchr::memmem;
use url::Url;

criterion_group!(benches, small, large);
criterion_main!(benches);

/// A directory of a package mirror.
fn small(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("22 entries");
    for (name, body, row_end) in PAGES {
        if name.starts_with("nginx-exact") || name.starts_with("apache") {
            bench(&mut group, name, &with_rows(body, row_end, 22));
        }
    }
    group.finish();
}

fn large(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("5,000 entries");
    for (name, body, row_end) in PAGES {
        bench(&mut group, name, &with_rows(body, row_end, 5000));
    }
    group.finish();
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn bench(group: &mut Group<'_>, name: &str, page: &[u8]) {
    let url = Url::parse("http://127.0.0.1:8080/pub/linux/").expect("a valid URL");
    let read = || parse(black_box(page), None, &url, PageLimits::default());
    group.throughput(Throughput::Bytes(page.len() as u64));
    group.bench_function(name, |bencher| {
        assert!(read().expect("a listing").ended, "{name}");
        bencher.iter(|| read().expect("a listing").entries.len());
    });
}

/// The page with only `rows` rows, all like the row of its file `b1000.bin`.
fn with_rows(page: &[u8], row_end: &str, rows: usize) -> Vec<u8> {
    let page = std::str::from_utf8(page).expect("the captures are UTF-8");
    let is_row = |row: &str| row.contains("b1000.bin");
    let all: Vec<&str> = page.split_inclusive(row_end).collect();
    let at = all.iter().position(|row| is_row(row)).expect("a row");
    let last = all.iter().rposition(|row| row.contains("~tilde"));
    // The first row is on one line with the text before the rows.
    let first = memmem::find(page.as_bytes(), FIRST.as_bytes()).unwrap_or(0);
    let head = page[..first]
        .rfind(row_end)
        .map_or(0, |at| at + row_end.len());
    let mut enlarged = page[..head].to_owned();
    for i in 0..rows {
        let name = format!("linux-image-6.1.0-{i}-amd64");
        enlarged.push_str(&all[at].replace("b1000", &name));
    }
    // No comma follows the last object of an array.
    if let Some(row) = enlarged.trim_end().strip_suffix("},") {
        enlarged = format!("{row}}}\r\n");
    }
    enlarged.extend(all[last.expect("a last row") + 1..].iter().copied());
    enlarged.into_bytes()
}

/// The first entry of most pages.
const FIRST: &str = "50%.bin";

macro_rules! page {
    ($name:literal) => {
        include_bytes!(concat!("../../crawler-cli/listing/src/fixtures/", $name))
    };
}

/// Name, captured page, and the end of its rows.
const PAGES: [(&str, &[u8], &str); 12] = [
    ("nginx-exact", page!("nginx-exact.html"), "\n"),
    ("nginx-json", page!("nginx-autoindex.json"), "\n"),
    ("nginx-xml", page!("nginx-autoindex.xml"), "\n"),
    ("apache-plain", page!("apache-plain.html"), "\n"),
    ("apache-fancy", page!("apache-fancy.html"), "\n"),
    ("apache-table", page!("apache-table.html"), "\n"),
    ("apache-icons", page!("apache-icons.html"), "\n"),
    ("lighttpd", page!("lighttpd.html"), "\n"),
    ("fancyindex", page!("fancyindex.html"), "\n"),
    ("caddy", page!("caddy.html"), "</tr>"),
    ("python", page!("python.html"), "\n"),
    ("mini-httpd", page!("mini_httpd.html"), "\n"),
];
