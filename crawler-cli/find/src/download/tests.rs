//! Downloads in virtual time, with scripted heads and bodies, into real directories.

use std::fs;
use std::io;
use std::time::{Duration, Instant, UNIX_EPOCH};

use tempfile::TempDir;
use url::Url;

use super::names::Name;
use super::store::is_own_coding;
use super::*;
use crate::cause::Cause;
use crate::expr::{Memo, Verdict};
use crate::found::{Found, Saved, Unread};
use crate::host_crawl::{Change, KeptCrawl, Reply};
use crate::link::Link;
use crate::policy::{Follow, Policy};
use crate::visitor::{LinkVerdict, Visitor};
use crawl::failure::FailureScope;
use crawl::retry::Failed;
use listing::range::{SizeRange, TimeRange};

/// The downloads of a host, their directory, and the results.
struct World {
    directory: TempDir,
    store: Store,
    downloads: Downloads,
    crawl: HostCrawl,
    now: Instant,
    log: Log,
}

const START: &str = "http://h/pub/";

impl World {
    fn new() -> Self {
        Self::with(false)
    }

    fn with(overwrite: bool) -> Self {
        let mut policy = Policy::default();
        policy.host.robots = false;
        // Pauses of known length.
        policy.host.retry.jitter = 0.0;
        let directory = tempfile::tempdir().expect("a directory");
        let start = Url::parse(START).expect("a URL");
        let mut store = Store::new(Root::open(directory.path()).expect("writable"));
        store.base = Some(Base::of(&start, Follow::Listings));
        store.scope.start(&start);
        store.most_redirects = policy.limits.redirects;
        store.overwrite = overwrite;
        Self {
            store,
            downloads: Downloads::default(),
            crawl: HostCrawl::new(&start, policy),
            now: Instant::now(),
            log: Log::default(),
            directory,
        }
    }

    fn want(&mut self, name: &str) -> bool {
        self.want_listed(name, None, None)
    }

    fn want_listed(
        &mut self,
        name: &str,
        size: Option<SizeRange>,
        modified: Option<TimeRange>,
    ) -> bool {
        self.crawl.add_file(Wanted {
            url: format!("{START}{name}"),
            size,
            modified,
            chain: None,
        })
    }

    /// The next request as a line, with its id.
    fn poll(&mut self) -> Option<(RequestId, String)> {
        let mut on = Around {
            crawl: &mut self.crawl,
            store: &mut self.store,
            turn: Turn::new(self.now, &mut self.log),
        };
        let get = self.downloads.poll_request(&mut on)?;
        let rest = get
            .rest
            .map(|(at, validator)| format!(" {at}- if {validator}"));
        Some((
            get.id,
            format!("GET {}{}", get.url, rest.unwrap_or_default()),
        ))
    }

    #[track_caller]
    fn expect(&mut self, request: &str) -> RequestId {
        let (id, asked) = self.poll().expect("a request");
        assert_eq!(asked, request);
        id
    }

    fn handle(
        &mut self,
        id: RequestId,
        act: impl FnOnce(&mut Store, &mut Wanted, &mut Flight) -> Result<(), FileEnd>,
    ) -> Body {
        let mut on = Around {
            crawl: &mut self.crawl,
            store: &mut self.store,
            turn: Turn::new(self.now, &mut self.log),
        };
        self.downloads.handle(id, &mut on, act)
    }

    fn head(&mut self, id: RequestId, head: &Reply<'_>) -> Body {
        if !matches!(head.status, 429 | 503) {
            self.crawl.politeness().handle_answer(self.now);
        }
        self.handle(id, |store, wanted, flight| {
            store.handle_head(wanted, flight, head)
        })
    }

    fn data(&mut self, id: RequestId, bytes: &[u8]) -> Body {
        self.handle(id, |store, wanted, flight| {
            store.append(wanted, flight, bytes)
        })
    }

    fn end(&mut self, id: RequestId) {
        self.handle(id, |store, wanted, flight| store.handle_end(wanted, flight));
    }

    fn fail(&mut self, id: RequestId, scope: FailureScope) {
        let cause = Cause::Transfer("lost".into());
        let failed = Failed::new(cause.class(), scope);
        self.handle(id, |_, _, _| Err(FileEnd::Failed(failed, cause)));
    }

    /// The results since the last call.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log.0)
    }

    /// The names and lengths of all files.
    fn files(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        let mut all: Vec<(String, u64)> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, entry.metadata().expect("a file").len())
            })
            .collect();
        all.sort();
        all
    }
}

/// Collects the results.
#[derive(Default)]
struct Log(Vec<String>);

impl Visitor for Log {
    fn found(&mut self, _: &Found<'_>, _: &mut Memo) -> Verdict {
        Verdict::Go
    }

    fn unread(&mut self, _: Unread<'_>) {}

    fn link(&mut self, _: &Link) -> LinkVerdict {
        LinkVerdict::Outside
    }

    fn downloaded(&mut self, saved: Saved<'_>) {
        let name = &saved.url[START.len()..];
        self.0
            .push(format!("{name} {} {:?}", saved.length, saved.how));
    }

    fn not_downloaded(&mut self, url: &str, cause: &Cause) {
        self.0.push(format!("{}: {cause}", &url[START.len()..]));
    }
}

fn ok(length: Option<u64>) -> Reply<'static> {
    let length: Option<&'static [u8]> = length.map(|length| {
        let text = length.to_string().into_bytes();
        &*text.leak()
    });
    Reply {
        status: 200,
        content_length: length,
        etag: Some(b"\"v1\""),
        last_modified: Some(b"Thu, 01 Jan 1970 01:00:00 GMT"),
        ..Reply::default()
    }
}

fn moved(location: Option<&'static [u8]>) -> Reply<'static> {
    Reply {
        status: 302,
        location,
        ..Reply::default()
    }
}

/// A part of a file of the first version.
fn part(range: &str, length: Option<u64>) -> Reply<'_> {
    Reply {
        status: 206,
        content_range: Some(range.as_bytes()),
        ..ok(length)
    }
}

/// The trap: a session has ended, and the login page to which the server redirects takes the place of the file.
#[test]
fn a_page_that_a_redirect_leads_to_is_no_file() {
    let listed = Some(SizeRange::exact(9));
    let rounded = Some(SizeRange { lo: 0, hi: 2048 });
    for (name, listed, content_type, length, is_taken) in [
        ("x.iso", listed, "text/html; charset=utf-8", Some(4), false),
        ("x.iso", listed, "application/xhtml+xml", Some(4), false),
        ("x.iso", listed, "application/octet-stream", Some(4), true),
        ("x.iso", listed, "text/html", Some(9), true),
        ("x.html", listed, "text/html", Some(4), true),
        // No size says that the page is the file.
        ("x.iso", None, "text/html", Some(4), false),
        ("x.iso", rounded, "text/html", Some(4), false),
        ("x.iso", listed, "text/html", None, false),
    ] {
        let mut world = World::new();
        world.want_listed(name, listed, None);
        let (id, _) = world.poll().expect("a request");
        assert_eq!(world.head(id, &moved(Some(b"/login"))), Body::Unwanted);
        let id = world.expect("GET http://h/login");
        let page = Reply {
            content_type: Some(content_type.as_bytes()),
            ..ok(length)
        };
        let taken = world.head(id, &page) == Body::Wanted;
        assert_eq!(taken, is_taken, "{name} {length:?}");
        let page =
            "redirects to http://h/login, an HTML page that no size in the listing speaks for";
        if !taken {
            assert_eq!(world.told(), [format!("{name}: {page}")]);
        }
    }
}

#[test]
fn redirects_that_lead_to_no_file_are_named_and_leave_nothing() {
    for (location, cause) in [
        (
            Some(&b"http://other/x"[..]),
            "redirects to http://other/x, which is on another host",
        ),
        (
            Some(b"file:///etc/passwd"),
            "redirects to \"file:///etc/passwd\", which is no usable http or https URL",
        ),
        (None, "redirects without a usable Location"),
        (Some(b"/pub/x"), "more than 5 redirects"),
    ] {
        let mut world = World::new();
        world.want("x");
        while let Some((id, _)) = world.poll() {
            assert_eq!(world.head(id, &moved(location)), Body::Unwanted);
        }
        assert_eq!(world.told(), [format!("x: {cause}")]);
        assert_eq!(world.files(), []);
    }
}

/// A file of which two bytes have come, and the request for the rest.
fn after_two_bytes(length: Option<u64>) -> (World, RequestId) {
    let mut world = World::new();
    world.want("x");
    let id = world.expect("GET http://h/pub/x");
    assert_eq!(world.head(id, &ok(length)), Body::Wanted);
    world.data(id, b"ab");
    world.fail(id, FailureScope::Request);
    assert!(world.poll().is_none(), "it waits");
    world.now += Duration::from_secs(1);
    let id = world.expect("GET http://h/pub/x 2- if \"v1\"");
    (world, id)
}

#[test]
fn another_version_takes_the_place_of_a_part() {
    let other = Reply {
        etag: Some(b"\"v2\""),
        ..ok(Some(3))
    };
    for ignores_if_range in [false, true] {
        let (mut world, mut id) = after_two_bytes(Some(4));
        if ignores_if_range {
            let part = Reply {
                etag: other.etag,
                ..part("bytes 2-2/3", Some(3))
            };
            assert_eq!(world.head(id, &part), Body::Unwanted);
            id = world.expect("GET http://h/pub/x");
        }
        assert_eq!(world.head(id, &other), Body::Wanted);
        world.data(id, b"new");
        world.end(id);
        assert_eq!(world.told(), ["x 3 Fetched"]);
        assert_eq!(world.files(), [("x".to_owned(), 3)]);
    }
}

#[test]
fn a_part_that_is_the_whole_file_gets_its_name() {
    let (mut world, id) = after_two_bytes(None);
    let complete = Reply {
        status: 416,
        content_range: Some(b"bytes */2"),
        ..ok(None)
    };
    assert_eq!(world.head(id, &complete), Body::Unwanted);
    assert_eq!(world.told(), ["x 2 Resumed(2)"]);
    assert_eq!(world.files(), [("x".to_owned(), 2)]);
}

#[test]
fn a_part_of_another_url_is_no_part() {
    let mut world = World::new();
    for (name, text) in [
        (".x.courser-part", "something else"),
        (
            ".x.courser-note",
            r#"{"url":"http://h/y","validator":"\"v1\""}"#,
        ),
    ] {
        fs::write(world.directory.path().join(name), text).expect("written");
    }
    world.want("x");
    world.expect("GET http://h/pub/x");
}

#[test]
fn a_shorter_part_than_asked_for_is_followed_by_another() {
    let (mut world, first) = after_two_bytes(Some(6));
    let mut id = Some(first);
    for (at, range) in [(2, "bytes 2-3/6"), (4, "bytes 4-5/6")] {
        let request = format!("GET http://h/pub/x {at}- if \"v1\"");
        let id = id.take().unwrap_or_else(|| world.expect(&request));
        assert_eq!(world.head(id, &part(range, Some(2))), Body::Wanted);
        world.data(id, b"cd");
        world.end(id);
        world.now += Duration::from_secs(60);
    }
    assert_eq!(world.told(), ["x 6 Resumed(4)"]);
    assert_eq!(world.files(), [("x".to_owned(), 6)]);
}

/// A part in chunks may go on behind its range, for ever.
#[test]
fn a_part_that_is_longer_than_its_range_is_no_part() {
    let (mut world, id) = after_two_bytes(Some(6));
    assert_eq!(world.head(id, &part("bytes 2-5/6", None)), Body::Wanted);
    assert_eq!(world.data(id, b"cdef"), Body::Wanted);
    assert_eq!(world.data(id, b"g"), Body::Unwanted);
    assert_eq!(world.told().len(), 1);
    assert_eq!(world.files(), []);
}

/// Each attempt brings something: there are more of them than the policy has.
#[test]
fn progress_counts_for_more_than_attempts() {
    let mut world = World::new();
    world.want("x");
    for at in 0..10 {
        let (id, _) = world.poll().expect("another attempt");
        let range = format!("bytes {}-10485759/10485760", at << 20);
        let head = match at {
            0 => ok(Some(10 << 20)),
            _ => part(&range, Some((10 - at) << 20)),
        };
        assert_eq!(world.head(id, &head), Body::Wanted);
        assert_eq!(world.data(id, &vec![7; 1 << 20]), Body::Wanted);
        match at {
            9 => world.end(id),
            _ => world.fail(id, FailureScope::Request),
        }
        world.now += Duration::from_secs(1);
    }
    assert_eq!(world.told(), ["x 10485760 Resumed(9437184)"]);
}

/// A directory with a file `x` of four bytes and of the first hour of 1970.
fn with_file() -> World {
    let world = World::new();
    let path = world.directory.path().join("x");
    fs::write(&path, "mine").expect("written");
    let file = fs::File::options().write(true).open(&path).expect("a file");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(3600))
        .expect("a time");
    world
}

#[test]
fn what_the_listing_shows_needs_no_request() {
    let time = |lo, hi| Some(TimeRange { lo, hi });
    let exact = |bytes| Some(SizeRange::exact(bytes));
    for (size, modified, is_kept) in [
        (exact(4), time(3600, 3600), true),
        (exact(4), time(3580, 3639), true),
        // Not precise enough, or another file.
        (exact(4), time(0, 86_400), false),
        (exact(4), time(3601, 3660), false),
        (exact(4), None, false),
        (exact(5), time(3600, 3600), false),
        (Some(SizeRange { lo: 3, hi: 5 }), time(3600, 3600), false),
        (None, time(3600, 3600), false),
    ] {
        let mut world = with_file();
        world.want_listed("x", size, modified);
        match is_kept {
            true => assert_eq!(
                (world.poll(), world.told()),
                (None, vec!["x 4 Kept".into()])
            ),
            false => drop(world.expect("GET http://h/pub/x")),
        }
    }
}

#[test]
fn files_are_compared_by_size_and_time() {
    let differs = "exists and differs";
    let status = |status| Reply {
        status,
        ..ok(Some(4))
    };
    let of = |last_modified, length| Reply {
        last_modified,
        ..ok(length)
    };
    let later = Some(&b"Thu, 01 Jan 1970 01:00:01 GMT"[..]);
    for (head, told) in [
        (ok(Some(4)), "x 4 Kept"),
        (ok(None), "x 4 Kept"),
        (of(None, Some(4)), "x 4 Kept"),
        (of(None, None), differs),
        (ok(Some(5)), differs),
        (of(later, Some(4)), differs),
        (status(403), "x: the server answered 403"),
        (status(404), "x: the server answered 404"),
    ] {
        let mut world = with_file();
        world.want("x");
        let id = world.expect("GET http://h/pub/x");
        assert_eq!(world.head(id, &head), Body::Unwanted);
        assert!(!world.crawl.has_files());
        assert_eq!(world.files(), [("x".to_owned(), 4)]);
        let log = world.told();
        let is_told = log[0] == told || told == differs && log[0].contains(differs);
        assert!(log.len() == 1 && is_told, "{log:?}");
    }
}

#[test]
fn one_name_is_for_one_url() {
    let mut world = World::new();
    for (name, is_new) in [
        ("a%2520b", true),
        ("a%2520b", false),
        ("a%2Fb", true),
        ("a%252Fb", true),
    ] {
        assert_eq!(world.want(name), is_new, "{name}");
    }
    world.expect("GET http://h/pub/a%2520b");
    world.expect("GET http://h/pub/a%2Fb");
    assert!(world.poll().is_none());
    let told = world.told();
    assert!(
        told.len() == 1
            && told[0].starts_with("a%252Fb: not downloaded: another URL is written to "),
        "{told:?}"
    );
}

/// The run is to end: what else is to be written would fail as well.
#[test]
fn a_full_disk_is_told_from_other_errors() {
    let mut world = World::new();
    let name = Name::of("http://h/pub/x", None);
    for (kind, is_full) in [
        (io::ErrorKind::PermissionDenied, false),
        (io::ErrorKind::StorageFull, true),
    ] {
        let cause = world.store.failed(&name, kind.into());
        assert!(cause.to_string().contains("cannot write "), "{cause}");
        assert_eq!(world.store.is_full(), is_full);
    }
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    for (overwrite, told) in [(false, "exists"), (true, "Fetched")] {
        let mut world = World::with(overwrite);
        world.want("x");
        let id = world.expect("GET http://h/pub/x");
        assert_eq!(world.head(id, &ok(Some(2))), Body::Wanted);
        assert_eq!(world.data(id, b"ab"), Body::Wanted);
        fs::write(world.directory.path().join("x"), "mine").expect("written");
        world.end(id);
        let log = world.told();
        assert!(log.len() == 1 && log[0].contains(told), "{log:?}");
        let length = if overwrite { 2 } else { 4 };
        assert!(world.files().contains(&("x".to_owned(), length)));
    }
}

#[test]
fn codings_of_the_file_itself_are_its_own() {
    for (coding, name, own) in [
        (&b"gzip"[..], &b"x.tar.gz"[..], true),
        (b"X-GZIP", b"x.tgz", true),
        (b"identity", b"x", true),
        (b"gzip", b"x.txt", false),
        (b"gzip", b"gz", true),
        (b"zstd", b"x.zst", true),
        (b"br", b"x.gz", false),
        (b"gzip, gzip", b"x.gz", false),
        (b"unknown", b"x.unknown", false),
    ] {
        let is_own = is_own_coding(coding, name);
        assert_eq!(is_own, own, "{}", coding.escape_ascii());
    }
}

/// What failed in an earlier run may fail again, and would keep the rest waiting.
#[test]
fn files_that_failed_in_an_earlier_run_come_last() {
    let mut earlier = World::new();
    earlier.crawl.keep_journal();
    earlier.want("bad");
    earlier.want("good");
    let mut tasks = Vec::new();
    for change in earlier.crawl.take_changes() {
        if let Change::Wanted(number, text) = change {
            tasks.push((number, text));
        }
    }
    let mut world = World::new();
    world.crawl.add_root("/pub/");
    let kept = KeptCrawl {
        files: tasks.split_off(1),
        spilled: 1,
        ..KeptCrawl::default()
    };
    world.crawl.restore(kept).expect("a crawl's own text");
    let turn = &mut Turn::new(world.now, &mut world.log);
    let added = world.crawl.add_back(turn, tasks);
    added.expect("a crawl's own text");
    world.expect("GET http://h/pub/good");
    world.expect("GET http://h/pub/bad");
}

#[test]
fn everything_that_is_left_is_given_up_when_nothing_can_be_fetched() {
    let mut world = World::new();
    for name in ["x", "y", "z"] {
        world.want(name);
    }
    let id = world.expect("GET http://h/pub/x");
    world.expect("GET http://h/pub/y");
    world.fail(id, FailureScope::Request);
    let turn = &mut Turn::new(world.now, &mut world.log);
    world.crawl.abandon(turn, &Cause::NoLocation);
    assert_eq!(world.told().len(), 3);
    assert!(!world.crawl.has_files());
}
