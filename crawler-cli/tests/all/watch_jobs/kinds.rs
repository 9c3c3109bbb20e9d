//! What the kinds of jobs do.

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
    service.run(&planner, "isos", 2);
    until("a success", || service.state("isos").last_success.is_some());
    let found = ["/pub/a.iso", "/pub/b.iso", "/pub/old/d.iso"].map(|path| server.url(path));
    let mut expected = BTreeSet::from(found);
    expected.insert("http://h.test/other".to_owned());
    assert_eq!(service.members("isos"), expected);
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
    service.run(&planner, "nightly", 2);
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
    service.run(&planner, "filings", 2);
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
    service.run(&planner, "filings", 2);
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
    let server = Script::start(|request| match request {
        "GET /pub/" => page(&["a/", "b/"]),
        "GET /pub/a/" | "GET /pub/b/" => page(&["x.iso"]),
        _ => response(200, "", "x"),
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
    let began = Instant::now();
    for name in ["one", "two", "find"] {
        service.run(&planner, name, 2);
    }
    until("all are done", || {
        let mut names = ["one", "two", "find"].into_iter();
        assert!(service.letters().is_empty(), "{:?}", service.letters());
        names.all(|name| service.state(name).last_success.is_some())
    });
    assert_eq!(server.most_at_once(), 1);
    let requests = server.requests().len();
    assert!(requests >= 4 + 4 + 3);
    assert!(
        began.elapsed() >= PERIOD * (requests as u32 - 1),
        "{requests}"
    );
}

/// The service checks URLs of a host again and again, while a fetch job asks it.
#[test]
fn checks_and_jobs_of_a_host_share_its_ceiling() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = Script::start(move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        seen.lock().expect("no test panicked here").push(path);
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
    let began = Instant::now();
    let service = Running::start(folder.path());
    let count = |kind: &str| {
        let asked = asked.lock().expect("no test panicked here");
        asked.iter().filter(|path| path.starts_with(kind)).count()
    };
    until("pages are checked", || count("/page/") >= 10);
    let output = watch(folder.path(), &["schedule", "run", "files"]);
    assert!(output.status.success(), "{}", stderr(&output));
    until("the files are fetched", || count("/file/") >= 150);
    service.end();
    let took = began.elapsed();
    assert_eq!(server.most_at_once(), 1);
    let asked = asked.lock().expect("no test panicked here");
    let is_file = |path: &String| path.starts_with("/file/");
    let first = asked.iter().position(is_file);
    let last = asked.iter().rposition(is_file);
    let during = &asked[first.expect("a file")..=last.expect("a file")];
    assert!(!during.iter().all(is_file), "checks go on");
    let requests = asked.len() as u32;
    assert!(took >= PERIOD * (requests - 1), "{requests} in {took:?}");
}
