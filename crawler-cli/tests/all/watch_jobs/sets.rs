//! Sets and their sources.

use super::*;

#[test]
fn all_formats_are_read() {
    let service = Service::new();
    let list = "\u{feff}# ours\r\nhttp://h.test/a\r\n\r\n  http://h.test/b  \nHTTP://H.test/c#x\n";
    let files = [
        ("list.txt", list.as_bytes().to_vec(), 3),
        ("urls", list.as_bytes().to_vec(), 3),
        ("list.txt.gz", gzip(list), 3),
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
fn a_url_that_was_cut_while_the_file_was_read_is_no_url_of_it() {
    let service = Service::new();
    // No buffer ends with a line.
    let url = |n: usize| format!("http://h.test/{n:0>82}\n");
    let text: String = (0..60_000).map(url).collect();
    assert_eq!(text.len(), 60_000 * 97);
    let path = service.file("list.txt", &text);
    let read = thread::scope(|scope| {
        let read = scope.spawn(|| service.read_file("docs", &path));
        until("some are read", || !service.members("docs").is_empty());
        File::create(&path).expect("cut");
        read.join().expect("no panic")
    });
    let error = read.expect_err("cut");
    assert!(error.contains("changed while it was read"), "{error}");
    let members = service.members("docs");
    assert!(!members.is_empty());
    for member in members {
        assert!(text.contains(&format!("{member}\n")), "{member}");
    }
}

#[test]
fn a_source_that_never_ends_keeps_no_other_set_waiting() {
    let service = Service::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (asked, was_asked) = channel();
    let slow = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<urlset>";
        client.write_all(head.as_bytes()).expect("sent");
        asked.send(()).expect("awaited");
        // Blanks until the client has enough of them.
        while client.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    let set = |name: &str, source| SetConfig {
        name: name.to_owned(),
        source,
        reread: None,
    };
    let url = format!("http://{address}/map.xml");
    let endless = set("a", Source::Sitemap(Url::parse(&url).expect("a URL")));
    let reader = SetReader::start(vec![endless.clone()], Arc::clone(&service.tools));
    let reader = reader.expect("threads");
    was_asked.recv().expect("a request");
    let path = service.file("list.txt", urls(3));
    let sets = vec![endless, set("b", Source::File(path))];
    reader.reload(sets, Arc::clone(&service.tools));
    until("the other set is read", || service.members("b").len() == 3);
    reader.stop();
    slow.join().expect("no panic");
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
    until("both were read", || reader.readings().all().len() == 2);
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
