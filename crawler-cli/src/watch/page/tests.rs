//! The pages, over real connections.

use std::collections::{BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::check::life::{Context, Profile, Rules, State};
use crate::check::{Cause, Verdict};
use crate::crawl::random::Random;
use crate::report::page::assert_well_formed;
use crate::store::{
    Answer, Buried, Change, Engine, Judgement, Lane, Lanes, NewDeadLetter, NewUrl, Notice, Origin,
    StoreHandle as _, UrlKey,
};
use crate::watch::admin::served::Served;
use crate::watch::hands::Reader;
use crate::watch::hands::strip::{Step, pieces};

const EVIL: &str = "<script>alert(1)</script>\"'\u{202e}\u{1b}[31m";

/// 120 URLs of two hosts: those that end in 7 are gone from time to time, one has a user.
fn filled() -> Served {
    fill_store(Served::start())
}

fn fill_store(served: Served) -> Served {
    served
        .store
        .call(|engine| fill(engine, Timestamp::now()))
        .expect("filled");
    served
}

fn fill(engine: &mut dyn Engine, now: Timestamp) -> Result<(), crate::store::StoreError> {
    let begin = now - SignedDuration::from_hours(60);
    let mut urls: Vec<String> = (0..119)
        .map(|n| format!("https://host{}.example/{n:03}?q=<script>", n % 2))
        .collect();
    urls.push("https://me:secret@host1.example/private".to_owned());
    let urls: Vec<NewUrl> = urls
        .iter()
        .map(|url| NewUrl::parse(url).expect("a URL"))
        .collect();
    engine.submit(EVIL, Origin::Hand, &urls, begin)?;
    for hour in 0..60 {
        let is_bad_time = hour / 6 % 2 == 0;
        judge_due(
            engine,
            begin + SignedDuration::from_hours(hour),
            is_bad_time,
        )?;
    }
    engine.note(&Notice {
        at: now,
        kind: EVIL.into(),
        host: None,
        who: Some(EVIL.into()),
        text: EVIL.into(),
    })?;
    let letter = NewDeadLetter {
        reason: EVIL.into(),
        attempts: 3,
        last: format!("GET / HTTP/1.1\n{EVIL}"),
        first_at: begin,
        last_at: now,
    };
    engine.bury(&Buried::Text(format!("javascript:{EVIL}")), &letter)?;
    Ok(())
}

/// Answers all that is due: URLs that end in 7 are not found at a bad time, which is every other six hours.
fn judge_due(
    engine: &mut dyn Engine,
    now: Timestamp,
    is_bad_time: bool,
) -> Result<(), crate::store::StoreError> {
    let rules: Rules = Profile::Default.rules();
    let mut random = Random::new(7);
    let mut hosts = engine.ready(Lanes::Schedule, now, &std::collections::HashSet::new(), 10)?;
    let in_doubt = engine.ready(
        Lanes::Doubt,
        now,
        &hosts.iter().map(|host| host.host.id).collect(),
        10,
    )?;
    hosts.extend(in_doubt);
    let mut judgements = Vec::new();
    for host in hosts {
        for lane in [Lane::Routine, Lane::Trouble, Lane::Gone, Lane::Doubt] {
            for due in engine.due(host.host.id, lane, None, now, 1_000)? {
                let is_bad = is_bad_time && due.url.contains("7?");
                let (verdict, status) = match is_bad {
                    true => (Verdict::Failed(Cause::Status404), Some(404)),
                    false => (Verdict::Ok, Some(200)),
                };
                let context = Context {
                    is_control_fine: true,
                    ..Context::default()
                };
                let mut life = due.life.clone();
                let decision =
                    rules.decide(now, &mut life, (verdict, status), &context, &mut random);
                let change = decision
                    .transition
                    .map(|change| Change::new(&change, status));
                let answer = Answer {
                    status,
                    detail: Some(EVIL.into()),
                    checked_at: Some(now),
                    ..Answer::of(verdict)
                };
                judgements.push(Judgement {
                    id: due.id,
                    answer: Some(answer),
                    next: Some((Lane::of(life.state(), false), decision.due)),
                    changes: change.into_iter().collect(),
                    life,
                    dead_letter: None,
                });
            }
        }
    }
    engine.judge(&judgements)?;
    Ok(())
}

mod forms;
mod statements;

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The targets of the links of a page into this service.
fn links(page: &str) -> Vec<String> {
    let hrefs = page.split("href=\"").skip(1);
    let hrefs = hrefs.filter_map(|rest| rest.split('"').next());
    hrefs
        .map(unescaped)
        .filter(|href| href.starts_with('/'))
        .collect()
}

#[test]
fn every_link_leads_to_a_page_that_is_well_formed_and_inert() {
    let served = filled();
    let (mut seen, mut queue) = (BTreeSet::new(), VecDeque::from(["/".to_owned()]));
    let mut urls = BTreeSet::new();
    while let Some(path) = queue.pop_front() {
        let answer = served.get(&path);
        let (head, page) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        if path.starts_with("/assets/") {
            assert!(head.contains("immutable"), "{head}");
            continue;
        }
        assert_well_formed(page);
        let (before, after) = page
            .split_once("<script src=\"/assets/")
            .expect("the script");
        let (_, after) = after.split_once(".js\" defer></script>").expect("its end");
        let page = &format!("{before}{after}");
        for inert in ["<script", "\u{202e}", "\u{1b}", "style=", " on", "secret"] {
            let found = page.find(inert);
            let is_word =
                inert == " on" && !page.contains(" onload=") && !page.contains(" onclick=");
            assert!(found.is_none() || is_word, "{path}: {inert}");
        }
        assert!(!page.contains("href=\"javascript:"), "{path}");
        if path.starts_with("/urls") && !path.contains("set=") {
            urls.extend(
                links(page)
                    .into_iter()
                    .filter(|link| link.starts_with("/url?")),
            );
        }
        for link in links(page) {
            // Of the pages about single URLs, some are enough.
            let is_url = link.starts_with("/url?");
            if (!is_url || link.contains("007") || link.contains("001"))
                && seen.insert(link.clone())
            {
                queue.push_back(link);
            }
        }
    }
    for page in [
        "/urls",
        "/hosts",
        "/changes",
        "/holds",
        "/letters",
        "/schedules",
        "/webhooks",
        "/config",
        "/log",
    ] {
        assert!(seen.contains(page), "{page}");
    }
    assert!(
        seen.iter().any(|link| link.starts_with("/letter?")),
        "{seen:?}"
    );
    assert!(
        seen.iter().any(|link| link.starts_with("/host?")),
        "{seen:?}"
    );
    assert_eq!(urls.len(), 119);
}

#[test]
fn a_list_goes_on_where_it_ended() {
    let served = filled();
    for path in [
        "/urls?host=https%3A%2F%2Fhost0.example%2F",
        "/host?root=https%3A%2F%2Fhost0.example%2F",
    ] {
        let (mut path, mut urls, mut pages) = (path.to_owned(), Vec::new(), 0);
        loop {
            let page = served.get(&path);
            urls.extend(
                links(&page)
                    .into_iter()
                    .filter(|link| link.starts_with("/url?")),
            );
            pages += 1;
            let next = page.split("rel=\"next\" href=\"").nth(1);
            match next.and_then(|rest| rest.split('"').next()) {
                Some(next) => path = unescaped(next),
                None => break,
            }
        }
        let different: BTreeSet<_> = urls.iter().collect();
        assert_eq!((urls.len(), different.len(), pages), (60, 60, 2), "{path}");
    }
    // What is no place in a list begins at the first page.
    for after in ["x", "s.9.1", "d.1", "n.", "%00"] {
        assert!(
            served
                .get(&format!("/urls?after={after}"))
                .contains("/url?"),
            "{after}"
        );
    }
}

#[test]
fn changes_are_filtered_and_paged() {
    let served = filled();
    let all = served.get("/changes");
    assert!(
        all.contains("SUSPECT") && all.contains("rel=\"next\""),
        "{all}"
    );
    let some = served.get("/changes?to=SUSPECT");
    let body = some.split("<tbody>").nth(1).expect("rows");
    assert!(
        body.contains("SUSPECT</span></span></td>")
            && !body.contains("→ <span class=\"state alive\">"),
        "{body}"
    );
}

#[test]
fn the_strip_has_the_states_of_the_text() {
    let served = filled();
    let page = served.get("/url?url=https%3A%2F%2Fhost1.example%2F007%3Fq%3D%3Cscript%3E");
    let strip = page.split("<svg class=\"strip\"").nth(1).expect("a strip");
    let strip = strip.split("</svg>").next().expect("an end");
    let shown: Vec<&str> = strip
        .split("rect class=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(shown.len(), 120);
    let step = |seconds, from, to| -> Step {
        (Timestamp::from_second(seconds).expect("a time"), from, to)
    };
    let steps = [
        step(10, State::New, State::Alive),
        step(50, State::Alive, State::Suspect),
        step(51, State::Suspect, State::Alive),
    ];
    let at = |seconds| Timestamp::from_second(seconds).expect("a time");
    let states = pieces(at(0), at(100), &steps, State::Alive, 10);
    assert_eq!(states[5], State::Suspect);
    assert_eq!((states[0], states[9]), (State::New, State::Alive));
    assert!(
        shown.contains(&"suspect") && shown.contains(&"alive"),
        "{shown:?}"
    );
}

#[test]
fn the_search_goes_to_what_is_meant() {
    let served = filled();
    let location = |path: &str| {
        let answer = served.get(path);
        let line = answer.lines().find(|line| line.starts_with("location: "));
        line.map(|line| line["location: ".len()..].to_owned())
    };
    assert_eq!(
        location("/search?q=host0.example").as_deref(),
        Some("/host?root=https%3A%2F%2Fhost0.example%2F")
    );
    let url = location("/search?q=https%3A%2F%2Fhost0.example%2F002%3Fq%3D%3Cscript%3E");
    assert!(url.is_some_and(|url| url.starts_with("/url?url=")));
    let none = served.get("/search?q=%3Cscript%3E");
    assert!(
        none.starts_with("HTTP/1.1 200 ") && !none.contains("<script>"),
        "{none}"
    );
    for path in [
        "/url?url=https%3A%2F%2Fother.example%2F",
        "/url",
        "/host?root=x",
        "/host",
        "/letter?number=99",
    ] {
        assert!(served.get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
}

#[test]
fn today_counts_what_has_changed_since_midnight() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("watch.db");
    let mut engine = crate::store::sqlite::Sqlite::open(&file).expect("opened");
    let noon: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
    fill(&mut engine, noon).expect("filled");
    let mut reader = Reader::open(&file).expect("opened");
    let counted = |reader: &mut Reader, now: Timestamp| -> u64 {
        let today = reader.today(now).expect("read");
        assert!(!today.is_behind);
        today.iter().map(|(.., count)| count).sum()
    };
    let expected = |engine: &mut crate::store::sqlite::Sqlite, from: &str| {
        let from: Timestamp = from.parse().expect("a time");
        let mut count = 0;
        let mut count_one = |event: crate::store::Event| {
            count += u64::from(event.at >= from);
            std::ops::ControlFlow::Continue(())
        };
        crate::store::Store::events(engine, crate::store::Cursor::START, &mut count_one)
            .expect("read");
        count
    };
    let later = |text: &str| -> Timestamp { text.parse().expect("a time") };
    // By then all are due: some turn negative, and are good again on the day after.
    let bad = later("2026-12-30T01:00:00Z");
    assert_eq!(counted(&mut reader, bad), 0);
    judge_due(&mut engine, bad, true).expect("judged");
    let changed = expected(&mut engine, "2026-12-30T00:00:00Z");
    assert!(changed > 0 && changed < expected(&mut engine, "2026-11-20T00:00:00Z"));
    assert_eq!(counted(&mut reader, bad), changed);
    assert_eq!(counted(&mut reader, bad), changed);
    let good = later("2026-12-31T07:00:00Z");
    assert_eq!(counted(&mut reader, good), 0);
    judge_due(&mut engine, good, false).expect("judged");
    let changed = expected(&mut engine, "2026-12-31T00:00:00Z");
    assert!(changed > 0);
    assert_eq!(counted(&mut reader, good), changed);
    // Another one that begins to read finds the same.
    let mut other = Reader::open(&file).expect("opened");
    assert_eq!(counted(&mut other, good), changed);
}

#[test]
fn places_in_lists_are_texts() {
    use crate::store::UrlId;
    let at = Timestamp::from_millisecond(1_760_000_000_123).expect("a time");
    for key in [
        UrlKey::Number(UrlId(7)),
        UrlKey::OfState(State::Gone, UrlId(8)),
        UrlKey::Due(at, UrlId(9)),
    ] {
        assert_eq!(super::urls::key_of(&super::urls::text_of(&key)), Some(key));
    }
}

/// The contrast of two colours (WCAG 2).
fn contrast(one: &str, other: &str) -> f64 {
    let light = |colour: &str| {
        let colour = match colour.len() {
            4 => colour[1..].chars().flat_map(|c| [c, c]).collect(),
            _ => colour[1..].to_owned(),
        };
        let part = |at: usize| {
            let part =
                f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour")) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4) + 0.05
    };
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn texts_can_be_read_in_both_schemes() {
    let colour = |name: &str, is_dark: bool| {
        let both = [crate::report::page::STYLE, super::assets::OWN].map(|style| {
            let (light, dark) = style
                .split_once("prefers-color-scheme: dark")
                .expect("two schemes");
            let scheme = if is_dark { dark } else { light };
            let value = scheme.split(&format!("--{name}: ")).nth(1)?;
            Some(value.split(';').next().expect("an end").to_owned())
        });
        let [base, own] = both;
        own.or(base).expect("a colour")
    };
    for is_dark in [false, true] {
        for ground in ["bg", "card"] {
            for text in ["ink", "soft", "blue", "green", "red"] {
                let contrast = contrast(&colour(text, is_dark), &colour(ground, is_dark));
                assert!(
                    contrast >= 4.5,
                    "{text} on {ground}, dark: {is_dark}: {contrast:.2}"
                );
            }
        }
    }
}
