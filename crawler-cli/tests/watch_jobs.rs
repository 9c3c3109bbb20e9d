//! The sets and jobs of the service, on a store in a file and against servers on the loopback interface.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::service::{Service as Running, folder, watch};
use common::{Script, page, response, stderr};
use courser::Rate;
use crawler_cli::find::Find;
use crawler_cli::jobs::{Cancel, CancelReason, Ceiling, CeilingLimits, Ceilings};
use crawler_cli::store::sqlite::Sqlite;
use crawler_cli::store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, NewJob, NewUrl, NoticeId, Origin, ScheduleChange,
    ScheduleState, StoreHandle as _, Which, Writer, WriterSettings,
};
use crawler_cli::watch::config::{CatchUp, JobConfig, Overlap, ScheduleConfig, SetConfig, Source};
use crawler_cli::watch::sets::{SetRead, SetReader, read_set};
use crawler_cli::watch::work::{Http, Planner, Tools, queue_of};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use url::Url;

mod common;

/// A store in a folder of its own, and the tools of jobs.
struct Service {
    folder: tempfile::TempDir,
    store: Writer,
    tools: Arc<Tools>,
}

impl Service {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, tools) = open(folder.path());
        Self {
            folder,
            store,
            tools,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("room");
        path
    }

    fn read(&self, set: &str, source: &Source) -> Result<SetRead, String> {
        read_set(set, source, &self.tools, &Cancel::new()).map_err(|error| error.to_string())
    }

    fn read_file(&self, set: &str, path: &Path) -> Result<SetRead, String> {
        self.read(set, &Source::File(path.to_owned()))
    }

    fn members(&self, set: &str) -> BTreeSet<String> {
        let which = Which::Set(set.to_owned());
        let read = self.store.read(move |store| {
            let mut urls = BTreeSet::new();
            store.export(&which, None, &mut |url| {
                urls.insert(url.url);
                ControlFlow::Continue(())
            })?;
            Ok(urls)
        });
        read.expect("readable")
    }

    fn add(&self, set: &'static str, url: &str) {
        let urls = [NewUrl::parse(url).expect("a URL")];
        let now = Timestamp::now();
        let added = self
            .store
            .call(move |store| store.submit(set, Origin::Hand, &urls, now));
        added.expect("writable");
    }

    fn notices(&self) -> Vec<String> {
        let read = self.store.read(|store| store.notices(NoticeId::START, 100));
        let notices = read.expect("readable").into_iter();
        notices.map(|(_, notice)| notice.text).collect()
    }

    fn letters(&self) -> Vec<DeadLetter> {
        letters(&self.store)
    }

    fn state(&self, schedule: &str) -> ScheduleState {
        let name = schedule.to_owned();
        let state = self.store.read(move |store| store.schedule(&name));
        state.expect("readable")
    }

    fn busy(&self, queue: &str) -> u64 {
        let queue = queue.to_owned();
        let counts = self.store.read(move |store| store.job_counts(&queue));
        let counts = counts.expect("readable");
        counts.waiting + counts.started
    }

    fn planner(&self, schedules: Vec<ScheduleConfig>) -> Planner {
        let planner = Planner::start(schedules, Vec::new(), Arc::clone(&self.tools));
        planner.expect("threads")
    }
}

fn open(folder: &Path) -> (Writer, Arc<Tools>) {
    let engine = Sqlite::open(&folder.join("watch.db")).expect("a store");
    let settings = WriterSettings {
        wait: Duration::from_millis(1),
        ..WriterSettings::default()
    };
    let store = Writer::start(engine, settings).expect("a thread");
    let http = Http::default()
        .allow_private()
        .timeout(Duration::from_secs(20));
    let tools = Tools::new(store.clone(), http);
    (store, Arc::new(tools))
}

fn letters(store: &Writer) -> Vec<DeadLetter> {
    let read = store.read(|store| {
        let mut letters = Vec::new();
        let filter = DeadLetterFilter::default();
        store.dead_letters(&filter, DeadLetterId::START, &mut |letter| {
            letters.push(letter);
            ControlFlow::Continue(())
        })?;
        Ok(letters)
    });
    read.expect("readable")
}

/// A schedule that does not fire on its own within a test.
fn schedule(name: &str, job: JobConfig) -> ScheduleConfig {
    ScheduleConfig {
        name: name.to_owned(),
        cron: "0 0 1 1 *".to_owned(),
        timezone: TimeZone::UTC,
        overlap: Overlap::Forbid,
        catch_up: CatchUp::Once,
        starting_deadline: None,
        jitter: Duration::ZERO,
        max_attempts: NonZeroU32::new(2).expect("not zero"),
        timeout: Some(Duration::from_secs(60)),
        job,
    }
}

fn command(words: &[&str]) -> JobConfig {
    JobConfig::Command {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

fn shell(script: &str) -> JobConfig {
    command(&["sh", "-c", script])
}

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).expect("into memory");
    encoder.finish().expect("into memory")
}

fn urls(count: usize) -> String {
    (0..count).map(|n| format!("http://h.test/{n}\n")).collect()
}

fn set_of(urls: &[&str]) -> BTreeSet<String> {
    urls.iter().map(|url| (*url).to_owned()).collect()
}

fn sitemap_of(urls: &[String]) -> String {
    let urls = urls
        .iter()
        .map(|url| format!("<url><loc>{url}</loc></url>"));
    format!("<urlset>{}</urlset>", urls.collect::<String>())
}

/// Waits for something that happens for sure.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

mod sets {
    use super::*;

    #[test]
    fn all_formats_are_read() {
        let service = Service::new();
        let list =
            "\u{feff}# ours\r\nhttp://h.test/a\r\n\r\n  http://h.test/b  \nHTTP://H.test/c#x\n";
        let files = [
            ("list.txt", list.as_bytes().to_vec(), 3),
            ("urls", list.as_bytes().to_vec(), 3),
            ("list.txt.gz", gzip(list), 3),
            (
                "table.csv",
                b"name,url\nx,http://h.test/1\ny,http://h.test/2\n".to_vec(),
                2,
            ),
            ("table.csv.gz", gzip("url\nhttp://h.test/1\n"), 1),
            (
                "records.jsonl",
                b"{\"url\":\"http://h.test/j\"}\n".to_vec(),
                1,
            ),
            (
                "sitemap.xml",
                sitemap_of(&["http://h.test/s".to_owned()]).into_bytes(),
                1,
            ),
            (
                "sitemap.xml.gz",
                gzip(sitemap_of(&["http://h.test/s".to_owned()])),
                1,
            ),
        ];
        for (name, content, count) in files {
            let path = service.file(name, content);
            let read = service.read_file(name, &path).expect(name);
            assert_eq!((read.urls, read.invalid), (count, 0), "{name}: {read}");
            assert_eq!(service.members(name).len() as u64, count, "{name}");
        }
        let spelled = set_of(&["http://h.test/a", "http://h.test/b", "HTTP://H.test/c"]);
        assert_eq!(service.members("list.txt"), spelled);
    }

    #[test]
    fn lines_that_are_no_urls_are_counted_and_the_first_are_named() {
        let service = Service::new();
        let wrong: String = (0..150).map(|n| format!("wrong {n}\n")).collect();
        let path = service.file(
            "list.txt",
            format!("http://h.test/a\nmailto:a@b\n{wrong}http://h.test/b\n"),
        );
        let read = service.read_file("docs", &path).expect("a list");
        assert_eq!((read.urls, read.invalid, read.named.len()), (2, 151, 20));
        assert!(
            read.named[0].starts_with("line 3: \"wrong 0\": "),
            "{:?}",
            read.named
        );
        let path = service.file(
            "table.jsonl",
            "{\"url\":\"http://h.test/a\"}\n{oh\n{\"x\":1}\n",
        );
        let read = service.read_file("records", &path).expect("records");
        assert_eq!((read.urls, read.invalid), (1, 2), "{read}");
    }

    #[test]
    fn a_source_that_has_not_changed_writes_nothing() {
        let service = Service::new();
        let path = service.file("list.txt", urls(10));
        assert!(
            !service
                .read_file("docs", &path)
                .expect("a list")
                .is_unchanged
        );
        let operations = || service.store.figures().operations.load(Ordering::SeqCst);
        for _ in 0..2 {
            let before = operations();
            assert!(
                service
                    .read_file("docs", &path)
                    .expect("a list")
                    .is_unchanged
            );
            // To look up the mark is the only operation.
            assert_eq!(operations() - before, 1);
            // The same content with another time is the same.
            fs::write(&path, urls(10)).expect("room");
        }
        fs::write(&path, urls(9)).expect("room");
        let read = service.read_file("docs", &path).expect("a list");
        assert_eq!((read.is_unchanged, read.left), (false, 1));
        assert_eq!(service.members("docs").len(), 9);
    }

    #[test]
    fn urls_that_left_the_source_leave_and_those_of_a_hand_stay() {
        let service = Service::new();
        let path = service.file("list.txt", urls(4));
        service.read_file("docs", &path).expect("a list");
        service.add("docs", "http://h.test/hand");
        service.add("docs", "http://h.test/3");
        fs::write(&path, urls(2)).expect("room");
        let read = service.read_file("docs", &path).expect("a list");
        assert!(read.kept.is_none(), "{read}");
        let expected = ["0", "1", "3", "hand"].map(|name| format!("http://h.test/{name}"));
        assert_eq!(service.members("docs"), BTreeSet::from(expected));
    }

    #[test]
    fn a_source_that_is_no_regular_file_is_refused_at_once() {
        let service = Service::new();
        let socket = service.folder.path().join("list.txt");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        // A pipe without a writer, or a device without an end, would be read for ever.
        for path in [socket.as_path(), Path::new("/dev/zero")] {
            let error = service.read_file("docs", path).expect_err("no file");
            assert!(error.contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_source_that_fails_is_cut_or_lost_too_much_removes_nothing() {
        let service = Service::new();
        let path = service.file("list.txt.gz", gzip(urls(1000)));
        service.read_file("docs", &path).expect("a list");
        let whole = service.members("docs");
        assert_eq!(whole.len(), 1000);

        let cut = gzip(urls(1000));
        fs::write(&path, &cut[..cut.len() - 20]).expect("room");
        let error = service.read_file("docs", &path).expect_err("cut");
        assert!(error.contains("cut"), "{error}");
        fs::remove_file(&path).expect("removed");
        let error = service.read_file("docs", &path).expect_err("not there");
        assert!(error.contains("list.txt.gz"), "{error}");
        fs::write(&path, "http://h.test/1\n").expect("room");
        for _ in 0..2 {
            // As long as it stays so, it is read again.
            let read = service.read_file("docs", &path).expect("a list");
            assert!(read.kept.is_some_and(|kept| kept.contains("999 of 1000")));
        }
        assert_eq!(service.members("docs"), whole);

        let path = service.file("map.xml", sitemap_of(&["http://h.test/a".to_owned()]));
        service.read_file("map", &path).expect("a sitemap");
        fs::write(&path, "<urlset><url><loc>http://h.test/b</loc></url>").expect("room");
        assert!(service.read_file("map", &path).is_err());
        let both = set_of(&["http://h.test/a", "http://h.test/b"]);
        assert_eq!(service.members("map"), both);
    }

    #[test]
    fn an_empty_source_is_refused_too() {
        let service = Service::new();
        let path = service.file("list.txt", urls(3));
        service.read_file("docs", &path).expect("a list");
        fs::write(&path, "").expect("room");
        assert!(
            service
                .read_file("docs", &path)
                .expect("a list")
                .kept
                .is_some()
        );
        assert_eq!(service.members("docs").len(), 3);
    }

    #[test]
    fn a_large_source_is_read_in_batches() {
        let service = Service::new();
        let path = service.file("list.txt", urls(20_000));
        let read = service.read_file("docs", &path).expect("a list");
        assert_eq!((read.urls, read.new), (20_000, 20_000));
        let groups = service.store.figures().groups.load(Ordering::SeqCst);
        assert!(groups >= 20_000 / 512, "{groups}");
    }

    #[test]
    fn a_stopped_reading_removes_nothing_and_the_next_one_is_whole() {
        let service = Service::new();
        let path = service.file("list.txt", urls(2000));
        service.read_file("docs", &path).expect("a list");
        fs::write(&path, urls(1500)).expect("room");
        let cancel = Cancel::new();
        cancel.set(CancelReason::Shutdown);
        let source = Source::File(path.clone());
        assert!(read_set("docs", &source, &service.tools, &cancel).is_err());
        assert_eq!(service.members("docs").len(), 2000);
        service.read_file("docs", &path).expect("a list");
        assert_eq!(service.members("docs").len(), 1500);
    }

    /// A site with an index of two sitemaps, one of them compressed.
    struct Site {
        server: Script,
        is_broken: Arc<AtomicBool>,
        is_shorter: Arc<AtomicBool>,
    }

    fn site(has_tags: bool) -> Site {
        let (is_broken, is_shorter) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (broken, shorter) = (Arc::clone(&is_broken), Arc::clone(&is_shorter));
        let server = Script::start_with_heads(move |head| {
            let target = head.split(' ').nth(1).unwrap_or("/").to_owned();
            let host = head.lines().find_map(|line| line.strip_prefix("Host: "));
            let base = format!("http://{}", host.unwrap_or("none"));
            let count = if shorter.load(Ordering::SeqCst) { 1 } else { 2 };
            let body = match &*target {
                "/index.xml" => format!(
                    "<sitemapindex><sitemap><loc>{base}/a.xml</loc></sitemap>\
                     <sitemap><loc>{base}/b.xml.gz</loc></sitemap></sitemapindex>"
                )
                .into_bytes(),
                "/a.xml" => sitemap_of(&[format!("{base}/1"), format!("{base}/2")]).into_bytes(),
                "/b.xml.gz" if broken.load(Ordering::SeqCst) => return response(404, "", ""),
                "/b.xml.gz" => {
                    let urls: Vec<_> = (3..3 + count).map(|n| format!("{base}/{n}")).collect();
                    gzip(sitemap_of(&urls))
                }
                _ => return response(404, "", ""),
            };
            let tag = format!("\"{count}\"");
            if has_tags && head.contains(&format!("If-None-Match: {tag}")) {
                return response(304, &format!("ETag: {tag}\r\n"), "");
            }
            let headers = if has_tags {
                format!("ETag: {tag}\r\n")
            } else {
                String::new()
            };
            response(200, &headers, body)
        });
        Site {
            server,
            is_broken,
            is_shorter,
        }
    }

    #[test]
    fn an_index_is_followed_and_only_a_complete_reading_removes() {
        for has_tags in [true, false] {
            let service = Service::new();
            let site = site(has_tags);
            let url = Url::parse(&site.server.url("/index.xml")).expect("a URL");
            let source = Source::Sitemap(url);
            let read = service.read("site", &source).expect("an index");
            assert_eq!((read.urls, read.new), (4, 4), "{read}");
            assert!(
                service
                    .read("site", &source)
                    .expect("an index")
                    .is_unchanged
            );

            // One of the sitemaps fails, and the others may have lost something.
            site.is_shorter.store(true, Ordering::SeqCst);
            site.is_broken.store(true, Ordering::SeqCst);
            let error = service.read("site", &source).expect_err("broken");
            assert!(error.contains("/b.xml.gz: status 404"), "{error}");
            assert_eq!(service.members("site").len(), 4);

            site.is_broken.store(false, Ordering::SeqCst);
            let read = service.read("site", &source).expect("an index");
            assert_eq!((read.urls, read.left), (3, 1), "{read}");
            assert_eq!(service.members("site").len(), 3);
        }
    }

    #[test]
    fn a_server_that_is_busy_is_asked_again() {
        let service = Service::new();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let server = Script::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0 => response(503, "Retry-After: 0\r\n", ""),
            1 => response(302, "Location: /other.txt\r\n", ""),
            _ => response(200, "", "http://h.test/1\nhttp://h.test/2\n"),
        });
        let url = Url::parse(&server.url("/map.txt")).expect("a URL");
        let read = service.read("site", &Source::Sitemap(url)).expect("a list");
        assert_eq!(read.urls, 2);
        assert_eq!(
            server.requests(),
            ["GET /map.txt", "GET /map.txt", "GET /other.txt"]
        );
    }

    #[test]
    fn the_reader_reads_at_the_start_and_again_when_told_and_notes_what_is_wrong() {
        let service = Service::new();
        let path = service.file("list.txt", urls(3));
        let sets = |missing: &str| {
            let set = |name: &str, source| SetConfig {
                name: name.to_owned(),
                source,
                reread: None,
            };
            vec![
                set("docs", Source::File(path.clone())),
                set("lost", Source::File(service.path(missing))),
                set("by hand", Source::Submitted),
            ]
        };
        let tools = Arc::clone(&service.tools);
        let reader = SetReader::start(sets("no.txt"), tools).expect("a thread");
        until("both were read", || reader.readings().len() == 2);
        assert_eq!(service.members("docs").len(), 3);
        until("a notice", || {
            service.notices().iter().any(|text| text.contains("no.txt"))
        });
        service.file("yes.txt", urls(1));
        fs::write(&path, urls(5)).expect("room");
        reader.reload(sets("yes.txt"), Arc::clone(&service.tools));
        until("both are there", || {
            service.members("docs").len() == 5 && service.members("lost").len() == 1
        });
        reader.stop();
    }
}

mod kinds {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(20);

    #[test]
    fn what_find_finds_joins_the_set_and_nothing_leaves() {
        let service = Service::new();
        let server = Script::start(|request| match request {
            "GET /pub/" => page(&["a.iso", "b.iso", "c.txt", "old/"]),
            "GET /pub/old/" => page(&["d.iso"]),
            _ => response(404, "", ""),
        });
        service.add("isos", "http://h.test/other");
        let find = JobConfig::Find {
            start: Url::parse(&server.url("/pub/")).expect("a URL"),
            args: ["-name", "*.iso", "-type", "f"].map(str::to_owned).to_vec(),
            into_set: "isos".to_owned(),
        };
        let planner = service.planner(vec![schedule("isos", find)]);
        planner.run_now("isos").expect("started");
        until("a success", || service.state("isos").last_success.is_some());
        let found = ["/pub/a.iso", "/pub/b.iso", "/pub/old/d.iso"].map(|path| server.url(path));
        let mut expected = BTreeSet::from(found);
        expected.insert("http://h.test/other".to_owned());
        assert_eq!(service.members("isos"), expected);
        assert!(planner.run_now("nothing").is_err());
    }

    #[test]
    fn a_sitemap_job_is_the_source_of_its_set() {
        let service = Service::new();
        let count = Arc::new(AtomicUsize::new(3));
        let left = Arc::clone(&count);
        let server = Script::start(move |_| {
            let urls: Vec<_> = (0..left.load(Ordering::SeqCst))
                .map(|n| format!("http://h.test/{n}"))
                .collect();
            response(200, "", sitemap_of(&urls))
        });
        let job = JobConfig::Sitemap {
            url: Url::parse(&server.url("/map.xml")).expect("a URL"),
            into_set: "site".to_owned(),
        };
        let planner = service.planner(vec![schedule("map", job)]);
        planner.run_now("map").expect("started");
        until("three", || service.members("site").len() == 3);
        count.store(2, Ordering::SeqCst);
        until("the first run has ended", || {
            service.busy(&queue_of("map")) == 0
        });
        planner.run_now("map").expect("started");
        until("two", || service.members("site").len() == 2);
    }

    #[test]
    fn a_check_job_reads_the_source_and_makes_all_urls_due() {
        let service = Service::new();
        let path = service.file("list.txt", urls(5000));
        let set = SetConfig {
            name: "docs".to_owned(),
            source: Source::File(path.clone()),
            reread: None,
        };
        let job = JobConfig::Check {
            set: "docs".to_owned(),
        };
        let tools = Arc::clone(&service.tools);
        let planner = Planner::start(vec![schedule("nightly", job)], vec![set], tools);
        let planner = planner.expect("threads");
        let before = Timestamp::now();
        planner.run_now("nightly").expect("started");
        until("a success", || {
            service.state("nightly").last_success.is_some()
        });
        let which = Which::Set("docs".to_owned());
        let due = service.store.read(move |store| {
            let mut due = 0;
            store.export(&which, None, &mut |url| {
                due += usize::from(url.due.is_some_and(|(_, at)| at <= Timestamp::now()));
                ControlFlow::Continue(())
            })?;
            Ok(due)
        });
        assert_eq!(due.expect("readable"), 5000);
        assert!(before <= Timestamp::now());
    }

    #[test]
    fn a_file_for_each_line_is_fetched_once_and_asked_for_with_its_validators() {
        let service = Service::new();
        let names: Vec<String> = (0..40).map(|n| format!("T{n}")).collect();
        let list = service.file(
            "tickers.txt",
            format!("# tickers\n{}\nGONE\nA/B\n", names.join("\n")),
        );
        let refused = Arc::new(AtomicUsize::new(0));
        let refusals = Arc::clone(&refused);
        let server = Script::start_with_heads(move |head| {
            let target = head.split(' ').nth(1).unwrap_or("/").to_owned();
            if target == "/f/GONE" {
                return response(404, "", "");
            }
            // The first requests are too many.
            if refusals.fetch_add(1, Ordering::SeqCst) < 5 {
                return response(429, "Retry-After: 0\r\n", "");
            }
            if head.contains("If-None-Match: \"1\"") {
                return response(304, "", "");
            }
            response(200, "ETag: \"1\"\r\n", format!("body of {target}"))
        });
        let into = service.path("files");
        let job = JobConfig::Fetch {
            list,
            template: server.url("/f/{}"),
            into: into.clone(),
        };
        let planner = service.planner(vec![schedule("filings", job)]);
        planner.run_now("filings").expect("started");
        until("a success", || {
            service.state("filings").last_success.is_some()
        });
        for name in &names {
            let body = fs::read_to_string(into.join(name)).expect("a file");
            assert_eq!(body, format!("body of /f/{name}"));
        }
        let body = fs::read_to_string(into.join("A%2FB")).expect("a file");
        assert_eq!(body, "body of /f/A%2FB");
        let letters = service.letters();
        let reasons: Vec<_> = letters
            .iter()
            .map(|letter| &*letter.letter.reason)
            .collect();
        assert_eq!(reasons, ["status_404"]);
        assert_eq!(letters[0].letter.attempts, 2);
        let count = |requests: &[String], name: &str| {
            let target = format!("GET /f/{name}");
            requests
                .iter()
                .filter(|request| **request == target)
                .count()
        };
        let requests = server.requests();
        assert_eq!(requests.len(), 41 + 5 + 2);
        assert_eq!(count(&requests, "GONE"), 2);

        // The next firing finds nothing new.
        until("the run has ended", || {
            service.busy(&queue_of("filings")) == 0
        });
        let first = service.state("filings").last_success;
        planner.run_now("filings").expect("started");
        until("another success", || {
            service.state("filings").last_success > first
        });
        let conditional = server
            .heads()
            .iter()
            .filter(|head| head.contains("If-None-Match"))
            .count();
        assert_eq!(conditional, 41);
    }

    /// Two fetch jobs and a search ask one host, which has one connection and a rate.
    #[test]
    fn all_jobs_of_a_host_share_its_ceiling() {
        let mut service = Service::new();
        let times = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&times);
        let server = Script::start(move |request| {
            seen.lock()
                .expect("no test panicked here")
                .push(Instant::now());
            match request {
                "GET /pub/" => page(&["a/", "b/"]),
                "GET /pub/a/" | "GET /pub/b/" => page(&["x.iso"]),
                _ => response(200, "", "x"),
            }
        });
        let ceiling = Ceiling::new(CeilingLimits {
            concurrency: NonZeroUsize::new(1),
            rate: Some(Rate::every(PERIOD)),
        });
        let mut ceilings = Ceilings::default();
        ceilings.add("*".parse().expect("a pattern"), ceiling);
        let http = Http::default().allow_private().ceilings(ceilings);
        service.tools = Arc::new(Tools::new(service.store.clone(), http));
        let list = service.file("list", "A\nB\nC\nD\n");
        let fetch = |name: &str| {
            let job = JobConfig::Fetch {
                list: list.clone(),
                template: server.url(&format!("/{name}/{{}}")),
                into: service.path(name),
            };
            schedule(name, job)
        };
        let find = JobConfig::Find {
            start: Url::parse(&server.url("/pub/")).expect("a URL"),
            args: ["-name", "*.iso"].map(str::to_owned).to_vec(),
            into_set: "isos".to_owned(),
        };
        let find = schedule("find", find);
        let planner = service.planner(vec![fetch("one"), fetch("two"), find]);
        for name in ["one", "two", "find"] {
            planner.run_now(name).expect("started");
        }
        until("all are done", || {
            let mut names = ["one", "two", "find"].into_iter();
            assert!(service.letters().is_empty(), "{:?}", service.letters());
            assert!(service.letters().is_empty(), "{:?}", service.letters());
            names.all(|name| service.state(name).last_success.is_some())
        });
        assert_eq!(server.most_at_once(), 1);
        let times = times.lock().expect("no test panicked here");
        assert!(times.len() >= 4 + 4 + 3);
        // No window of ten periods has more than ten requests; the clock of the receiver may be a little late.
        for window in times.windows(11) {
            assert!(
                window[10] - window[0] >= PERIOD * 9,
                "{:?}",
                window[10] - window[0]
            );
        }
    }

    /// The service checks URLs of a host again and again, while a fetch job asks it.
    #[test]
    fn checks_and_jobs_of_a_host_share_its_ceiling() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let server = Script::start(move |request| {
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut seen = seen.lock().expect("no test panicked here");
            seen.push((Instant::now(), path));
            response(200, "", "x")
        });
        let config = format!(
            "limits.allow_private = true\nlimits.robots = false\n\
             policy.alive_interval = ['1ms', '2ms']\n\
             [[host]]\nmatch = '*'\nrate = 50\nconnections = 1\n\
             [[set]]\nname = 'pages'\nurls = 'urls.txt'\n\
             [[schedule]]\nname = 'files'\ncron = '0 0 29 2 *'\n\
             job = {{ fetch = 'list.txt', template = '{}', into = 'files' }}\n",
            server.url("/file/{}"),
        );
        let urls: Vec<_> = (0..20).map(|n| server.url(&format!("/page/{n}"))).collect();
        let folder = folder(&config, &urls);
        let list: Vec<_> = (0..150).map(|n| n.to_string()).collect();
        fs::write(folder.path().join("list.txt"), list.join("\n")).expect("room");
        let service = Running::start(folder.path());
        let count = |kind: &str| {
            let asked = asked.lock().expect("no test panicked here");
            asked
                .iter()
                .filter(|(_, path)| path.starts_with(kind))
                .count()
        };
        until("pages are checked", || count("/page/") >= 10);
        let output = watch(folder.path(), &["schedule", "run", "files"]);
        assert!(output.status.success(), "{}", stderr(&output));
        until("the files are fetched", || count("/file/") >= 150);
        service.end();
        assert_eq!(server.most_at_once(), 1);
        let asked = asked.lock().expect("no test panicked here");
        let is_file = |path: &str| path.starts_with("/file/");
        let first = asked.iter().position(|(_, path)| is_file(path));
        let last = asked.iter().rposition(|(_, path)| is_file(path));
        let during = &asked[first.expect("a file")..=last.expect("a file")];
        assert!(
            during.iter().any(|(_, path)| !is_file(path)),
            "checks go on"
        );
        // No window of ten periods has more than ten requests; the clock of the receiver may be a little late.
        for window in asked.windows(11) {
            let took = window[10].0 - window[0].0;
            assert!(took >= PERIOD * 9, "{took:?}: {window:?}");
        }
    }

    #[test]
    fn a_command_that_fails_is_a_dead_letter_and_one_that_hangs_is_stopped() {
        let service = Service::new();
        let mut hang = schedule("hang", shell("echo waiting; sleep 600"));
        hang.timeout = Some(Duration::from_millis(200));
        let fail = schedule("fail", shell("echo broken >&2; exit 7"));
        let planner = service.planner(vec![hang, fail]);
        planner.run_now("hang").expect("started");
        planner.run_now("fail").expect("started");
        until("two dead letters", || service.letters().len() == 2);
        let mut texts: Vec<_> = service
            .letters()
            .into_iter()
            .map(|letter| letter.letter.last)
            .collect();
        texts.sort();
        assert_eq!(
            texts[0],
            "the command ended with exit status 7; its last output: broken"
        );
        assert!(texts[1].contains("time limit of 200ms"), "{texts:?}");
        assert_eq!(service.state("fail").last_success, None);
    }
}

mod life {
    use super::*;

    fn find_job() -> JobConfig {
        JobConfig::Find {
            start: Url::parse("http://h.test/").expect("a URL"),
            args: Vec::new(),
            into_set: "x".to_owned(),
        }
    }

    #[test]
    fn a_job_that_panics_is_a_dead_letter_and_others_run() {
        let mut service = Service::new();
        let tools = Tools::new(service.store.clone(), Http::default());
        let tools = tools.find_reader(|_, _| -> Result<Find, String> { panic!("no such luck") });
        service.tools = Arc::new(tools);
        let planner = service.planner(vec![
            schedule("panics", find_job()),
            schedule("works", shell("true")),
        ]);
        planner.run_now("panics").expect("started");
        until("a dead letter", || !service.letters().is_empty());
        let letter = &service.letters()[0].letter;
        assert_eq!((&*letter.reason, letter.attempts), ("panic", 2));
        assert!(letter.last.contains("no such luck"), "{letter:?}");
        planner.run_now("works").expect("started");
        until("a success", || {
            service.state("works").last_success.is_some()
        });
    }

    static RELEASED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_job_that_hangs_and_hears_nothing_is_given_up_and_the_next_one_runs() {
        let mut service = Service::new();
        let tools = Tools::new(service.store.clone(), Http::default());
        let tools = tools.find_reader(|_, _| -> Result<Find, String> {
            while !RELEASED.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            Err("late".to_owned())
        });
        service.tools = Arc::new(tools);
        let mut hang = schedule("hang", find_job());
        hang.timeout = Some(Duration::from_millis(100));
        hang.max_attempts = NonZeroU32::MIN;
        let planner = service.planner(vec![hang]);
        planner.run_now("hang").expect("started");
        until("a dead letter", || service.letters().len() == 1);
        assert_eq!(service.letters()[0].letter.reason, "time_limit");
        // The thread is stuck, and another one does the work.
        planner.run_now("hang").expect("started");
        until("a second one", || service.letters().len() == 2);
        RELEASED.store(true, Ordering::SeqCst);
        planner.drain(Duration::from_secs(10));
        // The late results have changed nothing.
        assert!(
            service
                .letters()
                .iter()
                .all(|letter| letter.letter.reason == "time_limit")
        );
    }

    #[test]
    fn a_drain_keeps_jobs_that_run_and_does_not_count_their_attempt() {
        let service = Service::new();
        let mark = service.path("mark");
        let script = format!("test -e {0} || {{ touch {0}; sleep 600; }}", mark.display());
        let mut job = schedule("long", shell(&script));
        job.max_attempts = NonZeroU32::MIN;
        let planner = service.planner(vec![job.clone()]);
        planner.run_now("long").expect("started");
        until("the command runs", || mark.exists());
        let began = Instant::now();
        let drained = planner.drain(Duration::from_secs(600));
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "jobs are told at once"
        );
        assert_eq!(drained.left, 0);
        assert_eq!(service.state("long").last_success, None);
        assert_eq!(service.busy(&queue_of("long")), 1);
        let planner = service.planner(vec![job]);
        until("a success", || service.state("long").last_success.is_some());
        assert_eq!(service.letters().len(), 0);
        drop(planner);
    }

    #[test]
    fn firings_that_were_missed_are_made_up_for_once() {
        let service = Service::new();
        let store = service.store.clone();
        let last: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
        let next: Timestamp = "2021-01-01T00:00:00Z".parse().expect("a time");
        let fired = store.call(move |store| {
            for name in ["once", "skip"] {
                store.fire(name, last, last)?;
                let change = ScheduleChange {
                    next: Some(Some(next)),
                    ..ScheduleChange::default()
                };
                store.update_schedule(name, &change)?;
            }
            Ok(())
        });
        fired.expect("writable");
        let years = u64::try_from(Timestamp::now().to_zoned(TimeZone::UTC).year() - 2020);
        let years = years.expect("after 2020");
        let log = service.path("log");
        let script = format!("echo $COURSER_JOB >> {}", log.display());
        let mut skip = schedule("skip", shell(&script));
        skip.catch_up = CatchUp::Skip;
        let planner = service.planner(vec![schedule("once", shell(&script)), skip]);
        until("one has run", || {
            service.state("once").last_success.is_some()
        });
        until("the other was counted", || {
            service.state("skip").missed == years
        });
        assert_eq!(service.state("once").missed, years - 1);
        drop(planner);
        // A restart makes up for nothing again.
        let planner = service.planner(vec![schedule("once", shell(&script))]);
        planner.run_now("once").expect("started");
        let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        until("two runs", || lines() == 2);
        until("the run has ended", || service.busy(&queue_of("once")) == 0);
        drop(planner);
        assert_eq!(fs::read_to_string(&log).expect("a log"), "once\nonce\n");
    }

    #[test]
    fn a_firing_during_a_run_is_left_out_or_waits() {
        for (overlap, overlapped, runs) in [(Overlap::Forbid, 1, 1), (Overlap::QueueOne, 0, 2)] {
            let service = Service::new();
            let (log, end) = (service.path("log"), service.path("end"));
            let script = format!(
                "echo run >> {}; until test -e {}; do sleep 0.02; done",
                log.display(),
                end.display()
            );
            let mut job = schedule("long", shell(&script));
            job.overlap = overlap;
            let planner = service.planner(vec![job.clone()]);
            planner.run_now("long").expect("started");
            until("it runs", || log.exists());
            // Its time has come meanwhile.
            let next: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
            let planned = service.store.call(move |store| {
                let change = ScheduleChange {
                    next: Some(Some(next)),
                    ..ScheduleChange::default()
                };
                store.update_schedule("long", &change)
            });
            planned.expect("writable");
            planner.look();
            until("it was decided", || {
                service.state("long").last_fired.is_some()
            });
            assert_eq!(service.state("long").overlapped, overlapped);
            fs::write(&end, "").expect("room");
            until("all has ended", || service.busy(&queue_of("long")) == 0);
            let log = fs::read_to_string(&log).expect("a log");
            assert_eq!(log.lines().count(), runs, "{overlap:?}");
            drop(planner);
        }
    }

    #[test]
    fn a_paused_schedule_does_not_fire() {
        let service = Service::new();
        let next: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
        let set = |paused: bool| {
            let change = ScheduleChange {
                next: Some(Some(next)),
                paused: Some(paused),
                ..ScheduleChange::default()
            };
            let done = service
                .store
                .call(move |store| store.update_schedule("nightly", &change));
            done.expect("writable");
        };
        set(true);
        let job = schedule("nightly", shell("true"));
        let planner = service.planner(vec![job]);
        planner.look();
        planner.run_now("nightly").expect("started by hand");
        until("a success", || {
            service.state("nightly").last_success.is_some()
        });
        assert_eq!(service.state("nightly").last_fired, None);
        set(false);
        planner.look();
        until("it fires", || service.state("nightly").last_fired.is_some());
    }

    /// The part that runs in a process of its own, which its job kills.
    #[test]
    fn process_that_its_job_kills() {
        let Some(folder) = std::env::var_os("COURSER_TEST_FOLDER") else {
            return;
        };
        let (_store, tools) = open(Path::new(&folder));
        let planner = Planner::start(vec![killer()], Vec::new(), tools).expect("threads");
        until("killed", || false);
        drop(planner);
    }

    fn killer() -> ScheduleConfig {
        schedule(
            "killer",
            shell("echo run >> \"$COURSER_TEST_FOLDER/log\"; kill -9 $PPID"),
        )
    }

    #[test]
    fn a_job_that_kills_the_process_is_a_dead_letter_after_its_attempts() {
        let service = Service::new();
        let Service {
            folder,
            store,
            tools,
        } = service;
        let job = crawler_cli::watch::work::firing_job("killer", Timestamp::now());
        let job = NewJob {
            max_attempts: 2,
            ..job
        };
        let now = Timestamp::now();
        let stored = store.call(move |store| store.enqueue(std::slice::from_ref(&job), now));
        stored.expect("writable");
        drop(tools);
        store.close(Duration::from_secs(20)).expect("closed");
        drop(store);
        for _ in 0..2 {
            let mut child = Command::new(std::env::current_exe().expect("a program"));
            child.args(["--exact", "life::process_that_its_job_kills", "--nocapture"]);
            let status = child
                .env("COURSER_TEST_FOLDER", folder.path())
                .output()
                .expect("a process")
                .status;
            assert!(!status.success());
        }
        let (store, tools) = open(folder.path());
        let planner = Planner::start(vec![killer()], Vec::new(), tools).expect("threads");
        until("a dead letter", || letters(&store).len() == 1);
        let letter = &letters(&store)[0].letter;
        assert_eq!((&*letter.reason, letter.attempts), ("poison", 2));
        let log = fs::read_to_string(folder.path().join("log")).expect("a log");
        assert_eq!(log.lines().count(), 2);
        drop(planner);
    }
}
