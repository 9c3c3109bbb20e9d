//! The operator's page in headless Chromium, on a service that runs: every page is looked at, every kind of form is sent,
//! with and without scripts and by the keyboard. Screenshots of all pages are left in `target/tmp/pages`.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::browser::Browser;
use common::service::{Service, folder, stdout, watch};
use common::{Script, response};
use crawler_cli::check::guard::Hold;
use crawler_cli::store::sqlite::Sqlite;
use crawler_cli::store::{
    Buried, HostHold, JobStore as _, NewDeadLetter, NewUrl, Notice, Origin, StoreError, WatchStore,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Runs if it is ever more than text.
const EVIL: &str = "\"'><img src=x onerror=hacked=1><script>hacked=1</script>";

/// A service with something on each page, and what it checks.
struct World {
    folder: tempfile::TempDir,
    service: Service,
    token: String,
    fine: Script,
    failing: Script,
    is_good: Arc<AtomicBool>,
}

impl World {
    fn start() -> Self {
        let is_good = Arc::new(AtomicBool::new(true));
        let good = Arc::clone(&is_good);
        let fine = Script::start(move |request| {
            let words = request.split([' ', '/']).collect::<Vec<_>>();
            match words.get(2).copied().unwrap_or_default() {
                "moved" => response(301, &format!("Location: /new?{EVIL}\r\n"), ""),
                "gone" => response(410, "", ""),
                "changing" if !good.load(Ordering::SeqCst) => response(404, "", ""),
                _ => response(200, "", ""),
            }
        });
        let failing = Script::start(|_| response(404, "", ""));
        let kinds = ["fine", "moved", "gone", "changing"];
        let mut urls: Vec<String> = (0..200)
            .map(|n| fine.url(&format!("/{}/{n:03}", kinds[n % 4])))
            .collect();
        urls.push(fine.url(&format!("/{}?q={EVIL}", "long-name-".repeat(30))));
        urls.extend((0..8).map(|n| failing.url(&format!("/missing/{n}"))));
        let config = format!(
            "[limits]\nallow_private = true\nper_host_rate = 0\n[guard]\nself_network = {{ hosts = 100 }}\nhost_flip = {{ min = 1000 }}\n\
             [[set]]\nname = \"all\"\nurls = \"urls.txt\"\n\
             [[schedule]]\nname = \"nightly\"\ncron = \"15 2 * * *\"\njob = {{ check = \"all\" }}\n\
             [[webhook]]\nname = \"ops\"\nurl = \"{}\"\nsecret_file = \"secret\"\nevents = [\"broken\", \"guard\"]\n",
            fine.url("/fine/hook"),
        );
        let folder = folder(&config, &urls);
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        fs::write(folder.path().join("secret"), key).expect("room");
        let mut store = Sqlite::open(&folder.path().join("watch.db")).expect("opened");
        prepare(&mut store, &fine.url("/fine/000"), &failing.url("/")).expect("prepared");
        drop(store);
        let token = watch(folder.path(), &["token", "add", "operator", "--write"]);
        let token = stdout(&token)
            .split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned();
        let service = Service::start(folder.path());
        Self {
            folder,
            service,
            token,
            fine,
            failing,
            is_good,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.service.address)
    }

    /// The path of the page about a URL or a host.
    fn about(&self, path: &str, field: &str, url: &str) -> String {
        let mut page = url::Url::parse(&self.url(path)).expect("a URL");
        page.query_pairs_mut().append_pair(field, url);
        page.into()
    }
}

/// What a service meets only after days: a hold, dead letters, and notices.
fn prepare(store: &mut Sqlite, url: &str, held: &str) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let urls = [url, held].map(|url| NewUrl::parse(url).expect("a URL"));
    store.submit(EVIL, Origin::Hand, &urls, now)?;
    let letter = |reason: &str| NewDeadLetter {
        reason: reason.to_owned(),
        attempts: 3,
        last: format!("GET / HTTP/1.1\nHost: {EVIL}"),
        first_at: now,
        last_at: now,
    };
    let id = store.show(url)?.expect("known").url.id;
    store.bury(&Buried::Url(id), &letter("too_large"))?;
    store.bury(&Buried::Text(format!("javascript:{EVIL}")), &letter(EVIL))?;
    store.note(&Notice {
        at: now,
        kind: "test".to_owned(),
        host: None,
        who: Some(EVIL.to_owned()),
        text: EVIL.to_owned(),
    })?;
    let host = WatchStore::host(store, held)?.expect("known").host.id;
    store.save_hold(&HostHold {
        host,
        root: held.to_owned(),
        hold: Hold {
            since: now,
            sampled_at: None,
            was_sample_good: false,
        },
        held: 0,
        ending: None,
    })
}

fn log_in(browser: &Browser, world: &World) {
    browser.go(&world.url("/holds"));
    browser.wait_for("location.pathname === '/login'");
    browser.write("#token", &world.token);
    browser.click(".login button");
    browser.wait_for(
        "location.pathname === '/holds' && document.querySelector('h1').innerText === 'Holds'",
    );
}

/// Nothing went wrong that a page could do about, and nobody else was asked.
#[track_caller]
fn assert_clean(browser: &Browser, world: &World) {
    let console = browser.console();
    assert!(console.is_empty(), "{console:#?}");
    for request in browser.requests() {
        let is_own = request.starts_with(&world.url("/"));
        // The tab with which the browser starts is its own.
        let is_inner = request.starts_with("data:") || request.starts_with("chrome:");
        assert!(is_own || is_inner, "{request}");
    }
    assert_eq!(browser.run("return typeof hacked"), "undefined");
}

/// All pages, and the names of their pictures.
fn pages(world: &World) -> Vec<(&'static str, String)> {
    let odd = world
        .fine
        .url(&format!("/{}?q={EVIL}", "long-name-".repeat(30)));
    let odd = url::Url::parse(&odd).expect("a URL").to_string();
    let mut pages: Vec<(&'static str, String)> = [
        ("overview", "/"),
        ("urls", "/urls"),
        ("hosts", "/hosts"),
        ("changes", "/changes"),
        ("holds", "/holds"),
        ("letters", "/letters"),
        ("letter", "/letter?number=2"),
        ("schedules", "/schedules"),
        ("webhooks", "/webhooks"),
        ("config", "/config"),
        ("log", "/log"),
        ("search", "/search?q=%3Cscript%3Ehacked%3D1%3C/script%3E"),
        ("question", "/do/drop?number=2&back=/letters"),
    ]
    .map(|(name, path)| (name, world.url(path)))
    .into();
    pages.push((
        "url",
        world.about("/url", "url", &world.fine.url("/gone/002")),
    ));
    pages.push(("odd-url", world.about("/url", "url", &odd)));
    pages.push(("host", world.about("/host", "root", &world.fine.url("/"))));
    pages
}

#[test]
#[ignore = "needs chromium"]
fn every_page_is_shown_in_all_sizes_and_colours_and_runs_no_text() {
    let world = World::start();
    let browser = Browser::start();
    log_in(&browser, &world);
    // Each URL was checked, and there is a sample for the charts.
    browser.go(&world.url("/"));
    browser.wait_for("document.querySelector('#tiles').innerText.includes(' ms') && document.querySelector('path.area')");
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(&shots).expect("a folder");
    let mut wide = Vec::new();
    for (name, page) in pages(&world) {
        browser.go(&page);
        for (width, scheme) in [
            (1280, "light"),
            (1280, "dark"),
            (390, "light"),
            (390, "dark"),
        ] {
            let size =
                json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false });
            browser.tell("Emulation.setDeviceMetricsOverride", &size);
            let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
            browser.tell(
                "Emulation.setEmulatedMedia",
                &json!({ "features": [feature] }),
            );
            let overflow = browser.run("return document.documentElement.scrollWidth - innerWidth");
            if overflow.as_i64().is_none_or(|pixels| pixels > 0) {
                wide.push(format!("{name} {width}: {overflow}"));
            }
            fs::write(
                shots.join(format!("{name}-{width}-{scheme}.png")),
                browser.shot(),
            )
            .expect("written");
        }
        let headings = browser.run("return document.querySelectorAll('h1').length");
        assert_eq!(headings, 1, "{name}");
        let unscoped = "return document.querySelectorAll('th:not([scope])').length";
        assert_eq!(browser.run(unscoped), 0, "{name}");
        let nameless = "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea, svg:not([aria-hidden])')]\
             .filter(e => !e.labels?.length && !e.getAttribute('aria-label')).map(e => e.outerHTML)";
        assert_eq!(browser.run(nameless), json!([]), "{name}");
        assert_clean(&browser, &world);
    }
    assert!(wide.is_empty(), "wider than the screen: {wide:#?}");
}

#[test]
#[ignore = "needs chromium"]
fn forms_have_things_done_and_say_so() {
    let world = World::start();
    let browser = Browser::start();
    log_in(&browser, &world);

    // The page of a URL shows by itself what the check found.
    let changing = world.fine.url("/changing/003");
    world.is_good.store(false, Ordering::SeqCst);
    browser.go(&world.about("/url", "url", &changing));
    browser.run("window.mark = 1");
    browser.click("form[action='/do/check'] button");
    browser.wait_for("document.querySelector('.said')?.innerText.includes('is checked next')");
    browser.run("window.mark = 2");
    browser.wait_for("document.querySelector('#now').innerText.includes('SUSPECT')");
    assert_eq!(
        browser.run("return window.mark"),
        2,
        "the page was not loaded again"
    );
    assert_eq!(
        browser.run("return location.search.includes('said')"),
        false
    );

    browser.go(&world.url("/holds"));
    browser.click("form[action='/do/release'] button");
    browser.wait_for(
        "document.querySelector('.said').innerText.includes('Released http://127.0.0.1:')",
    );

    browser.go(&world.url("/letters?reason=too_large"));
    browser.click("td form[action='/do/replay'] button");
    browser
        .wait_for("document.querySelector('.said').innerText.includes('Replayed 1 dead letter')");

    browser.go(&world.url("/letters"));
    browser.click("td a[href^='/do/drop']");
    browser.wait_for("document.querySelector('h1').innerText === 'Drop?'");
    browser.click("form.deed button");
    browser.wait_for("document.querySelector('.said').innerText.includes('Dropped 1 dead letter')");

    browser.go(&world.url("/schedules"));
    browser.click("form[action='/do/run'] button");
    browser.wait_for("document.querySelector('.said').innerText.includes('nightly runs')");
    browser.wait_for("document.querySelector('#list').innerText.includes(' ago')");

    browser.go(&world.url("/"));
    browser.click("form[action='/do/pause'] button");
    browser.wait_for("document.querySelector('.now').innerText.includes('Not asking')");
    browser.click("form[action='/do/resume'] button");
    browser.wait_for("document.querySelector('.said').innerText.includes('Resumed everything')");
    assert_clean(&browser, &world);
}

#[test]
#[ignore = "needs chromium"]
fn the_page_shows_itself_anew_and_keeps_what_its_reader_does() {
    let mut world = World::start();
    let browser = Browser::start();
    log_in(&browser, &world);
    browser.go(&world.url("/urls"));
    browser.click("#add summary");
    browser.write("#urls", "https://half.example/");
    browser.run("document.querySelector('#urls').setSelectionRange(3, 7); scrollTo(0, 120)");
    let anew = "document.querySelector('footer time').dateTime !== window.before";
    let mark = "window.before = document.querySelector('footer time').dateTime";
    for _ in 0..2 {
        browser.run(mark);
        browser.wait_for(anew);
    }
    let kept = "const area = document.querySelector('#urls'); return [area.value, area.selectionStart, area.selectionEnd, \
                document.activeElement === area, document.querySelector('#add').open, scrollY]";
    assert_eq!(
        browser.run(kept),
        json!(["https://half.example/", 3, 7, true, true, 120])
    );
    // The form is as good as a new one.
    browser.click("#add form button");
    browser
        .wait_for("document.querySelector('.said')?.innerText.includes('1 URL new in set added')");

    // What is marked stays as it is.
    browser.run("getSelection().selectAllChildren(document.querySelector('h1'))");
    browser.run(mark);
    browser.run("window.was = performance.now()");
    browser.wait_for("performance.now() > window.was + 7000");
    assert_eq!(browser.run(&format!("return {anew}")), false);
    browser.run("getSelection().removeAllRanges()");
    browser.wait_for(anew);

    // It can be stopped, also for the pages that follow.
    browser.click("#refresh button");
    browser.wait_for("document.querySelector('#refresh').innerText.includes('Does not refresh')");
    browser.go(&world.url("/hosts"));
    browser.wait_for("document.querySelector('#refresh').innerText.includes('Does not refresh')");
    assert_clean(&browser, &world);
    browser.click("#refresh button");
    browser.run(mark);
    browser.wait_for(anew);

    // The service goes away: it says so, and asks less often.
    world.service.signal(rustix::process::Signal::TERM);
    world.service.wait();
    browser.wait_for("document.querySelector('#refresh').innerText.includes('does not answer; asked again in 20 s')");
}

#[test]
#[ignore = "needs chromium"]
fn pages_work_without_scripts_and_by_the_keyboard() {
    const TAB: char = '\u{e004}';
    const ENTER: char = '\u{e007}';
    let world = World::start();
    let browser = Browser::start();
    browser.tell(
        "Emulation.setScriptExecutionDisabled",
        &json!({ "value": true }),
    );
    log_in(&browser, &world);
    assert_eq!(
        browser.run("return document.querySelector('#refresh').innerText"),
        "Load again"
    );
    // The first step leads over the navigation to the content.
    browser.go(&world.url("/schedules"));
    browser.press(TAB);
    assert_eq!(
        browser.run("return document.activeElement.className"),
        "skip"
    );
    browser.press(ENTER);
    browser.wait_for("location.hash === '#main'");
    browser.press(TAB);
    assert_eq!(
        browser.run("return document.activeElement.innerText"),
        "Run now"
    );
    browser.press(ENTER);
    browser.wait_for("document.querySelector('.said')?.innerText.includes('nightly runs')");

    // Everything that can be used is reached, and is seen to be.
    for page in ["/", "/holds", "/letters", "/do/drop?number=2&back=/letters"] {
        browser.go(&world.url(page));
        let all = "return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]\
                   .filter(e => e.checkVisibility()).length";
        let all = browser.run(all).as_u64().expect("a number");
        for step in 0..all {
            browser.press(TAB);
            let seen = browser.run(
                "const e = document.activeElement; return [e.tagName, getComputedStyle(e).outlineStyle]",
            );
            assert_ne!(seen[0], "BODY", "{page}: {step} of {all}");
            assert_ne!(seen[1], "none", "{page}: {step} {seen}");
        }
    }
    browser.click(".visitor button");
    browser.wait_for("location.pathname === '/login'");
    browser.go(&world.url("/holds"));
    browser.wait_for("location.pathname === '/login'");
    let console: Vec<Value> = browser.console().into_iter().map(Value::from).collect();
    assert_eq!(console, Vec::<Value>::new());
    assert!(!world.failing.requests().is_empty() && world.folder.path().exists());
}
