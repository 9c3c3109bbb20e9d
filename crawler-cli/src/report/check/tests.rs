//! What the reports say, byte by byte.

use std::fs;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use check::reason::reason;
use check::sources::{Problem, ProblemKind};
use check::{Ending, Standing};
use plain::redirect::Redirect;
use verdict::Answer;
use verdict::{Cause, Class, Reference, Verdict};

/// A URL that was asked once, with no place that refers to it.
fn checked(url: &str, verdict: Verdict) -> Checked {
    let standing = match verdict.class() {
        Class::Ok => Standing::Passes,
        Class::Unknown => Standing::Warns,
        Class::Void => Standing::Untrusted,
        Class::Negative | Class::Network | Class::Soft => Standing::Fails,
    };
    let answer = Answer {
        attempts: 1,
        ..Answer::of(verdict)
    };
    Checked {
        standing,
        ..Checked::of(url.to_owned(), answer)
    }
}

fn place(source: &str, line: u32, column: u32, text: &str) -> Reference {
    Reference {
        source: source.into(),
        line: Some(line),
        column: Some(column),
        written: None,
        text: text.to_owned(),
    }
}

fn at(mut checked: Checked, references: &[Reference]) -> Checked {
    checked.references = references.to_vec();
    checked
}

/// One URL of each kind, with what is hard to write: escapes, several places, names with blanks.
fn samples() -> Vec<Checked> {
    let mut gone = checked("https://h.example/gone", Verdict::Failed(Cause::Status404));
    gone.answer.status = Some(404);
    gone.answer.method = Some("GET");
    gone.answer.latency = Some(Duration::from_micros(12_340));
    gone.answer.address = Some(IpAddr::from([192, 0, 2, 7]));
    gone.answer.checked_at = Some(Timestamp::from_millisecond(1_789_000_000_250).expect("a time"));
    let mut expired = checked("https://old.example/", Verdict::Failed(Cause::TlsExpired));
    expired.answer.detail = Some("certificate expired 3 days ago".to_owned());
    expired.answer.attempts = 4;
    let mut blocked = checked(
        "https://b.example/?a=1&b=2",
        Verdict::Failed(Cause::Blocked),
    );
    blocked.answer.status = Some(403);
    let mut moved = checked("http://m.example/", Verdict::Ok);
    moved.answer.status = Some(200);
    moved.answer.redirects = vec![Redirect {
        status: 301,
        url: "https://m.example/".to_owned(),
    }];
    moved.answer.moved_to = Some("https://m.example/".to_owned());
    moved.answer.final_url.clone_from(&moved.answer.moved_to);
    let mut known = checked("https://k.example/", Verdict::Failed(Cause::Status5xx(503)));
    known.answer.status = Some(503);
    known.state = Some(verdict::life::State::Unreachable);
    known.standing = Standing::FailsRecently(Some(Duration::from_secs(2 * 86_400)));
    let bad = "ht!tp://\u{1b}[31m\"<x>|\u{202e},=1+1";
    let mut invalid = checked(bad, Verdict::Failed(Cause::InvalidUrl));
    invalid.answer.attempts = 0;
    invalid.answer.detail = Some("not a valid URL: relative URL without a base".to_owned());
    vec![
        at(
            gone,
            &[
                place("docs/b c.md", 12, 5, "the \"old\" page"),
                place("docs/a.md", 3, 1, ""),
                place("docs/b c.md", 2, 40, "x"),
            ],
        ),
        at(expired, &[place("docs/a.md", 9, 2, "é🦀")]),
        at(blocked, &[place("https://site.example/page", 7, 3, "b")]),
        at(moved, &[place("docs/a.md", 1, 1, "m")]),
        at(known, &[place("-", 4, 1, "")]),
        at(invalid, &[place("docs/a.md", 10, 2, "=cmd")]),
        checked("https://fine.example/", Verdict::Ok),
    ]
}

fn summary(samples: &[Checked]) -> Summary {
    let mut summary = Summary::default();
    summary.urls = samples.len() as u64;
    summary.known = summary.urls;
    summary.requests = 9;
    summary.elapsed = Duration::from_millis(1500);
    summary.failing_recently = 1;
    summary.redirected = 1;
    summary.failing = 3;
    summary.problems = 1;
    for checked in samples {
        let class = checked.answer.verdict.class() as usize;
        summary.classes[class] += 1;
        summary.references += checked.references.len() as u64;
        if let Some(cause) = checked.answer.verdict.cause() {
            *summary.causes.entry(cause).or_default() += 1;
        }
        let host = summary.hosts.entry("https://h.example".to_owned());
        host.or_default().classes[class] += 1;
    }
    summary
}

fn problem() -> Problem {
    Problem {
        source: "docs/cut.xml".into(),
        line: Some(3),
        kind: ProblemKind::Cut,
        detail: "the sitemap is cut".to_owned(),
    }
}

/// What a report says about these URLs.
fn written(kind: Kind, samples: &[Checked]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report");
    let options = Options {
        json: true,
        reports: vec![(kind, path.clone())],
        summary: Some(SummaryFormat::Nothing),
        progress: Progress::Never,
        title: "Links of docs".to_owned(),
        ..Options::default()
    };
    let mut report = CheckReport::new(options, Arc::default()).expect("can be written");
    // Standard output belongs to the tests.
    report.outputs.retain(|output| !output.sink.is_stdout());
    report.tells_problems = false;
    for checked in samples {
        assert_eq!(
            report.event(&Event::Checked(checked)),
            ControlFlow::Continue(())
        );
    }
    let _ = report.event(&Event::Problem(&problem()));
    assert_eq!(report.close(&summary(samples)), Ok(()));
    fs::read_to_string(path).expect("UTF-8")
}

fn json_line(checked: &Checked) -> String {
    let mut line = Vec::new();
    json::write(checked, &mut line);
    String::from_utf8(line).expect("UTF-8")
}

#[test]
fn json_has_the_fields_in_order_and_leaves_out_what_is_not_known() {
    let lines: String = samples().iter().map(json_line).collect();
    let expected = r#"{"url":"https://h.example/gone","class":"neg","cause":"status_404","reason":"404 Not Found","status":404,"method":"GET","redirects":[],"attempts":1,"latency_ms":12.34,"address":"192.0.2.7","checked_at":"2026-09-10T00:26:40.250Z","refs":[{"source":"docs/b c.md","line":12,"column":5,"text":"the \"old\" page"},{"source":"docs/a.md","line":3,"column":1,"text":""},{"source":"docs/b c.md","line":2,"column":40,"text":"x"}]}
{"url":"https://old.example/","class":"net","cause":"tls_expired","reason":"certificate expired 3 days ago","redirects":[],"attempts":4,"refs":[{"source":"docs/a.md","line":9,"column":2,"text":"é🦀"}]}
{"url":"https://b.example/?a=1&b=2","class":"unk","cause":"blocked","reason":"403 Forbidden: the server refuses programs","status":403,"redirects":[],"attempts":1,"refs":[{"source":"https://site.example/page","line":7,"column":3,"text":"b"}]}
{"url":"http://m.example/","class":"ok","reason":"moved permanently to https://m.example/","status":200,"moved_to":"https://m.example/","final_url":"https://m.example/","redirects":[{"status":301,"url":"https://m.example/"}],"attempts":1,"refs":[{"source":"docs/a.md","line":1,"column":1,"text":"m"}]}
{"url":"https://k.example/","class":"net","cause":"status_503","reason":"503 Service Unavailable (fails in 2 d)","status":503,"state":"UNREACHABLE","redirects":[],"attempts":1,"refs":[{"source":"-","line":4,"column":1,"text":""}]}
{"url":"ht!tp://\u001b[31m\"<x>|\u202e,=1+1","class":"soft","cause":"invalid_url","reason":"not a valid URL: relative URL without a base","redirects":[],"attempts":0,"refs":[{"source":"docs/a.md","line":10,"column":2,"text":"=cmd"}]}
{"url":"https://fine.example/","class":"ok","redirects":[],"attempts":1,"refs":[]}
"#;
    assert_eq!(lines, expected);
}

proptest::proptest! {
    #[test]
    fn json_gives_back_any_text_and_address(url: String, text: String, address: IpAddr) {
        let mut checked = at(checked(&url, Verdict::Ok), &[place(&url, 1, 1, &text)]);
        checked.answer.address = Some(address);
        let line = json_line(&checked);
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(&value["url"], &url);
        assert_eq!(&value["refs"][0]["text"], &text);
        assert_eq!(&value["address"], &address.to_string());
        assert_eq!(line.matches('\n').count(), 1);
    }
}

#[test]
fn text_begins_with_what_is_broken() {
    let text = written(Kind::Text, &samples());
    let expected = "\
Broken: 3 URLs at 5 places

docs/a.md
   3:1  https://h.example/gone – 404 Not Found
   9:2  https://old.example/ – certificate expired 3 days ago
  10:2  ht!tp://\\u{1b}[31m\"<x>|\\u{202e},=1+1 – not a valid URL: relative URL without a base

docs/b c.md
  2:40  https://h.example/gone – 404 Not Found
  12:5  https://h.example/gone – 404 Not Found

Not read

  docs/cut.xml:3: the sitemap is cut

Not judged: 1 URL at 1 place

https://site.example/page
  7:3  https://b.example/?a=1&b=2 – 403 Forbidden: the server refuses programs

Broken, but not counted: 1 URL at 1 place

standard input
  4:1  https://k.example/ – 503 Service Unavailable (fails in 2 d)

Redirected: 1 URL at 1 place

docs/a.md
  1:1  http://m.example/ – moved permanently to https://m.example/

7 URLs at 8 places: 2 good, 3 BROKEN, 1 broken, but not for long enough, 1 not judged, 1 redirected; 1 source NOT READ
causes: 1 × status_404, 1 × tls_expired, 1 × status_503, 1 × blocked, 1 × invalid_url
9 requests in 1.50 s (6/s), 0 B received
";
    assert_eq!(text, expected);
}

#[test]
fn a_host_that_was_given_up_has_one_line_and_a_file_its_written_link() {
    let mut samples = Vec::new();
    for i in 0..3 {
        let url = format!("http://down.example:81/{i}");
        let mut down = checked(&url, Verdict::Failed(Cause::Refused));
        let end = if i == 0 {
            ""
        } else {
            " (the host was given up)"
        };
        down.answer.detail = Some(format!("connection refused{end}"));
        let places = ["a.md", "b.md"].map(|source| place(source, i, 1, ""));
        samples.push(at(down, &places));
    }
    let mut file = checked("file:///x/b%20c.md#d", Verdict::Failed(Cause::FileMissing));
    file.references = vec![Reference {
        written: Some("../b%20c.md#d".to_owned()),
        ..place("a.md", 9, 1, "")
    }];
    samples.push(file);
    let text = written(Kind::Text, &samples);
    let expected = "\
Broken: 4 URLs at 7 places

a.md
  9:1  ../b%20c.md#d (/x/b c.md) – there is no such file

hosts that were given up
  http://down.example:81 – 3 URLs: connection refused

";
    assert!(text.starts_with(expected), "{text}");
    assert!(json_line(&samples[3]).contains(r##""column":1,"written":"../b%20c.md#d","text":"""##));
    let page = written(Kind::Html, &samples);
    crate::report::page::tests::assert_harmless(&page);
    for part in [
        "<td class=\"n\">3</td><td><a href=\"http://down.example:81\"",
        "<td>../b%20c.md#d (/x/b c.md)</td>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("more places"));
    assert!(written(Kind::Junit, &samples).contains("a.md:9:1: ../b%20c.md#d: there is"));
}

#[test]
fn a_check_that_was_stopped_says_what_is_left() {
    let summary = Summary {
        urls: 1,
        known: 5,
        ending: Ending::Stopped,
        is_read_in_part: true,
        ..Summary::default()
    };
    let text = text::report(&Findings::default(), &summary, &Colours::new(false));
    let said = "1 URL at 0 places: 0 good; STOPPED early, 4 URLs left, and what was not read\n";
    assert!(text.starts_with(said), "{text}");
}

#[test]
fn redirects_are_listed_unless_they_are_ignored() {
    use findings::Part;
    let listed = Some(Part::Redirected);
    for (redirects, standing, part) in [
        (Redirects::Report, Standing::Passes, listed),
        (Redirects::Fail, Standing::Fails, listed),
        (Redirects::Ignore, Standing::Passes, None),
    ] {
        let mut moved = samples().swap_remove(3);
        moved.standing = standing;
        assert_eq!(Part::of(&moved, redirects), part, "{redirects:?}");
    }
    let mut blocked = samples()[2].clone();
    blocked.standing = Standing::Passes;
    assert_eq!(Part::of(&blocked, Redirects::Report), None);
}

#[test]
fn lines_that_were_dropped_are_said() {
    let mut read = checked("https://h.example/", Verdict::Ok);
    read.answer.detail = Some("lenient: 1 line dropped".to_owned());
    let judged = findings::Judged::new(&read, Redirects::Report);
    assert_eq!(judged.part, Some(findings::Part::Lenient));
    assert_eq!(judged.reason, "good, lenient: 1 line dropped");
    let line = json_line(&read);
    assert!(line.contains(r#""lenient":"1 line dropped""#), "{line}");
    let mut gone = checked("https://h.example/", Verdict::Failed(Cause::Status404));
    gone.answer.detail = read.answer.detail;
    let judged = findings::Judged::new(&gone, Redirects::Report);
    assert_eq!(judged.reason, "404 Not Found: lenient: 1 line dropped");
}

#[test]
fn lists_for_persons_are_bounded() {
    let mut findings = Findings::default();
    for i in 0..30_000 {
        let url = format!("https://h.example/{i}");
        let gone = checked(&url, Verdict::Failed(Cause::Status404));
        let gone = at(gone, &[place("a.md", i, 1, "")]);
        findings.add(&Judged::new(&gone, Redirects::Report));
    }
    findings.sort();
    let text = text::report(&findings, &Summary::default(), &Colours::new(false));
    assert!(text.starts_with("Broken: 30,000 URLs at 30,000 places\n"));
    assert!(text.contains("... and at 10,000 more places, which --json"));
    assert_eq!(text.matches("404 Not Found").count(), 20_000);
    let page = html::page("t", &findings, &Summary::default(), "now");
    assert!(page.contains("And at 28,000 more places."));
}

/// Who names a URL may change its verdict: what robots.txt keeps from the check is asked when the user names it.
#[test]
fn a_url_whose_verdict_changes_is_listed_by_the_last_one() {
    let robots = Verdict::Failed(Cause::Robots);
    let listed = checked("https://h.example/", robots);
    let listed = at(listed, &[place("a.md", 1, 1, "")]);
    let part = |verdict| {
        let checked = checked("https://h.example/", verdict);
        let changed = Checked {
            before: Some(listed.said()),
            ..at(checked, &[place("list", 2, 1, "")])
        };
        let mut findings = Findings::default();
        findings.add(&Judged::new(&listed, Redirects::Report));
        findings.add(&Judged::new(&changed, Redirects::Report));
        assert!(findings.part(findings::Part::Unjudged).is_empty());
        assert_eq!(findings.part(findings::Part::Unjudged).all(), 0);
        let places = findings.part(findings::Part::Broken);
        (places.urls(), places.all())
    };
    assert_eq!(part(Verdict::Failed(Cause::Status404)), (1, 2));
    assert_eq!(part(Verdict::Ok), (0, 0));
}

/// Places that were found after a URL was reported, about which nothing but the verdict is known.
fn later(first: &Checked, url: &str, line: u32) -> Checked {
    let answer = Answer {
        status: first.answer.status,
        ..Answer::of(first.answer.verdict)
    };
    Checked {
        standing: first.standing,
        before: Some(first.said()),
        references: vec![place("later.md", line, 1, "")],
        ..Checked::of(url.to_owned(), answer)
    }
}

#[test]
fn places_that_are_found_later_are_listed_with_their_urls() {
    let samples = samples();
    let (expired, moved) = (&samples[1], &samples[3]);
    let mut all = samples.clone();
    all.push(later(expired, "https://old.example/#part", 1));
    all.push(later(moved, &moved.url, 2));
    all.push(later(&samples[6], "https://fine.example/", 3));
    let text = written(Kind::Text, &all);
    for part in [
        "Broken: 3 URLs at 6 places\n",
        "Redirected: 1 URL at 2 places\n",
        "  1:1  https://old.example/#part – certificate expired 3 days ago\n",
        "  2:1  http://m.example/ – moved permanently to https://m.example/\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("fine.example"), "{text}");
    let page = written(Kind::Html, &all);
    assert!(page.contains("<h2>Broken: 3 URLs</h2><p>At 6 places, by source.</p>"));
    let junit = written(Kind::Junit, &all);
    assert!(junit.contains("tests=\"11\" failures=\"6\""), "{junit}");
    assert!(junit.contains("name=\"https://old.example/#part\" classname=\"later.md\""));
}

#[test]
fn words_say_why() {
    let words = |checked: &Checked| reason(checked).unwrap_or_default();
    for (cause, status, detail, expected) in [
        (
            Cause::Auth,
            401,
            "",
            "401 Unauthorized: asks for credentials",
        ),
        (Cause::DnsNxdomain, 0, "", "there is no host with this name"),
        (Cause::Robots, 0, "", "robots.txt disallows the request"),
        (Cause::Status4xx(418), 418, "", "status 418"),
        (
            Cause::Status4xx(418),
            418,
            "a teapot",
            "status 418: a teapot",
        ),
        (Cause::Blocked, 200, "a challenge page", "a challenge page"),
    ] {
        let mut failed = checked("http://h/", Verdict::Failed(cause));
        failed.answer.status = Some(status).filter(|status| *status > 0);
        failed.answer.detail = Some(detail.to_owned()).filter(|detail| !detail.is_empty());
        assert_eq!(words(&failed), expected);
    }
    let mut far = samples().swap_remove(0);
    far.answer.final_url = Some("http://other/".to_owned());
    assert_eq!(words(&far), "404 Not Found (redirected to http://other/)");
    let mut chain = samples().swap_remove(3);
    chain.answer.moved_to = None;
    let again = chain.answer.redirects[0].clone();
    chain.answer.redirects.push(again);
    let twice = "redirected to https://m.example/ (2 redirects)";
    assert_eq!(words(&chain), twice);
    let void = checked("http://h/", Verdict::Void(Some(Cause::Refused)));
    let own = "not judged: the network of this machine seemed to fail (the connection was refused)";
    assert_eq!(words(&void), own);
}

#[test]
fn junit_counts_its_cases() {
    let text = written(Kind::Junit, &samples());
    let text = regex::Regex::new("timestamp=\"[0-9T:-]*\"")
        .expect("valid")
        .replace(&text, "");
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="crawler-cli check" tests="10" failures="5" errors="1" skipped="2" time="1.500">
  <testsuite name="links" tests="10" failures="5" errors="1" skipped="2" time="1.500" >
    <testcase name="https://h.example/gone" classname="docs/b c.md" file="docs/b c.md" time="0.012">
      <failure type="status_404" message="404 Not Found">
docs/b c.md:12:5: 404 Not Found
</failure>
    </testcase>
"#;
    assert!(text.starts_with(expected), "{text}");
    let mut reader = quick_xml::Reader::from_str(&text);
    loop {
        use quick_xml::events::Event as Xml;
        match reader.read_event().expect("well-formed") {
            Xml::Eof => break,
            Xml::Start(tag) | Xml::Empty(tag) => {
                assert!(tag.attributes().all(|attribute| attribute.is_ok()));
            }
            _ => {}
        }
    }
    let count = |tag: &str| text.matches(&format!("<{tag}")).count();
    assert_eq!((count("testcase"), count("failure")), (10, 5));
    assert_eq!((count("error"), count("skipped")), (1, 2));
}

#[test]
fn the_page_is_harmless_and_has_all_lists() {
    let text = written(Kind::Html, &samples());
    crate::report::page::tests::assert_harmless(&text);
    for part in [
        "<h1>Links of docs</h1>",
        "<b>3</b><span>broken</span>",
        "<h2>Broken: 3 URLs</h2><p>At 5 places, by source.</p>",
        "<summary><span class=\"name\">docs/b c.md</span>",
        "<td class=\"n\">12:5</td><td><a href=\"https://h.example/gone\"",
        "<h2>Not judged: 1 URL</h2>",
        "<h2>By host</h2>",
        "<span class=\"name\">https://h.example</span>",
        "certificate expired 3 days ago",
        "docs/cut.xml:3: the sitemap is cut",
        "ht!tp://\\u{1b}[31m&quot;&lt;x&gt;|",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn enough_urls_tell_what_a_million_cost() {
    let mut summary = Summary::default();
    summary.stats.handle_cpu(Duration::from_millis(30));
    for (urls, cost) in [(999, ""), (1000, "; 30.0 CPU seconds for a million URLs")] {
        summary.urls = urls;
        let costs = figures::costs(&summary);
        assert!(costs.ends_with(&format!(" received{cost}")), "{costs}");
    }
}

#[test]
fn statuses_with_one_name_are_counted_together_and_hosts_apart() {
    let mut summary = Summary::default();
    summary.causes.insert(Cause::Status4xx(400), 2);
    summary.causes.insert(Cause::Status4xx(418), 3);
    summary.causes.insert(Cause::Reset, 4);
    let host = summary.hosts.entry("https://h.example".to_owned());
    host.or_default().classes[Class::Ok as usize] = 2;
    let value: serde_json::Value = serde_json::from_str(&figures::json(&summary)).expect("JSON");
    assert_eq!(value["summary"]["causes"]["status_4xx"], 5);
    assert_eq!(
        value["summary"]["urls_by_host"]["https://h.example"]["ok"],
        2
    );
    let lines = figures::lines(&summary);
    assert!(
        lines.contains(&"causes: 5 × status_4xx, 4 × reset".to_owned()),
        "{lines:?}"
    );
}
