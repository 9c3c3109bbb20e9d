//! The forms of the pages, as a browser sends them.

use url::form_urlencoded::Serializer;

use super::{EVIL, filled, unescaped};
use crate::check::guard::Hold;
use crate::store::{HostHold, NoticeId, Scope, StoreHandle as _, UrlDetail};
use crate::watch::admin::AdminLimits;
use crate::watch::admin::served::Served;

/// A form of a page: where it goes, and its fields.
#[derive(Clone, Debug)]
struct Sent {
    action: String,
    fields: Vec<(String, String)>,
}

impl Sent {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(field, _)| field != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    fn body(&self) -> String {
        Serializer::new(String::new())
            .extend_pairs(&self.fields)
            .finish()
    }
}

/// The forms of a page that have something done.
fn forms(page: &str) -> Vec<Sent> {
    let forms = page.split("<form class=\"deed\" ").skip(1);
    let value = |tag: &str, name: &str| {
        let value = tag.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
        Some(unescaped(value))
    };
    forms
        .map(|form| {
            let form = form.split("</form>").next().expect("its end");
            let fields = form.split("<input ").skip(1);
            Sent {
                action: value(form, "action").expect("an action"),
                fields: fields
                    .filter_map(|tag| Some((value(tag, "name")?, value(tag, "value")?)))
                    .collect(),
            }
        })
        .collect()
}

/// The form of a page that goes there.
fn form_to(served: &Served, path: &str, action: &str) -> Sent {
    let page = served.get(path);
    let found = forms(&page).into_iter().find(|form| form.action == action);
    found.unwrap_or_else(|| panic!("no form to {action} in {path}: {page}"))
}

/// Where the answer to a form leads.
fn sent(served: &Served, form: &Sent) -> String {
    let answer = served.post(
        &form.action,
        "Sec-Fetch-Site: same-origin\r\n",
        &form.body(),
    );
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    let line = answer.lines().find(|line| line.starts_with("location: "));
    line.expect("a place")["location: ".len()..].to_owned()
}

/// What the page after a form says.
fn told(served: &Served, form: &Sent) -> String {
    let page = served.get(&sent(served, form));
    let (_, rest) = page.split_once("class=\"said ").expect("a message");
    unescaped(rest.split("</p>").next().expect("its end"))
}

fn detail(served: &Served, url: &str) -> UrlDetail {
    let url = url.to_owned();
    let found = served.store.call(move |engine| engine.show(&url));
    found.expect("read").expect("known")
}

fn notices(served: &Served, kind: &str) -> usize {
    let kind = kind.to_owned();
    let count = served.store.call(move |engine| {
        let notices = engine.notices_before(NoticeId::END, 100)?;
        Ok(notices
            .iter()
            .filter(|(_, notice)| notice.kind == kind)
            .count())
    });
    count.expect("read")
}

const URL: &str = "https://host1.example/001?q=<script>";
const ROOT: &str = "https://host1.example/";

fn page_of(path: &str, name: &str, value: &str) -> String {
    super::super::pieces::href(path, &[(name, value)])
}

#[test]
fn a_url_is_checked_now_and_removed() {
    let served = filled();
    let page = page_of("/url", "url", URL);
    let before = detail(&served, URL);
    let told_first = told(&served, &form_to(&served, &page, "/do/check"));
    assert!(told_first.contains("Done.") && told_first.contains("/001?q=<script> is checked next"));
    let due = |detail: &UrlDetail| detail.url.due.map(|(_, at)| at);
    assert!(
        due(&detail(&served, URL)) < due(&before),
        "it is due before its time"
    );

    // It is asked first whether it shall be removed.
    let question = super::links(&served.get(&page));
    let question = question.iter().find(|link| link.starts_with("/do/remove?"));
    let question = question.expect("a question");
    assert!(served.get(question).contains("is not checked any more"));
    assert_eq!(detail(&served, URL).sets.len(), 1);
    let remove = form_to(&served, question, "/do/remove");
    assert!(told(&served, &remove).contains("Removed https://host1.example/001"));
    assert_eq!(detail(&served, URL).sets.len(), 0);
    let again = form_to(&served, question, "/do/remove");
    assert!(told(&served, &again).contains("Not done."));
}

#[test]
fn a_form_that_is_sent_twice_is_performed_once() {
    let served = filled();
    let form = form_to(&served, &page_of("/url", "url", URL), "/do/check");
    let place = sent(&served, &form);
    assert_eq!(sent(&served, &form), place);
    assert_eq!(notices(&served, "recheck"), 1);
    // A form of another page has another number.
    sent(
        &served,
        &form_to(&served, &page_of("/url", "url", URL), "/do/check"),
    );
    assert_eq!(notices(&served, "recheck"), 2);
}

#[test]
fn dead_letters_are_replayed_and_dropped() {
    let served = filled();
    // The letter of the fixture is about a text that is no URL.
    let replay = form_to(&served, "/letters", "/do/replay");
    assert!(told(&served, &replay).contains("passed over 1"));
    let question = page_of("/do/drop", "number", "1");
    let drop = form_to(&served, &question, "/do/drop");
    assert!(told(&served, &drop).contains("Dropped 1 dead letter"));
    assert!(served.get("/letter?number=1").starts_with("HTTP/1.1 404 "));
    // Which ones has to be said: never all.
    let all = drop.with("number", "").with("number-of-form", "77");
    assert!(told(&served, &all).contains("Nothing was changed"));
}

#[test]
fn a_hold_is_released_or_confirmed() {
    let served = filled();
    let hold = || {
        let held = served.store.call(move |engine| {
            let host = engine.host(ROOT)?.expect("known").host.id;
            engine.save_hold(&HostHold {
                host,
                root: ROOT.to_owned(),
                hold: Hold {
                    since: jiff::Timestamp::now(),
                    sampled_at: None,
                    was_sample_good: false,
                },
                held: 0,
                ending: None,
            })
        });
        held.expect("held");
    };
    hold();
    let page = served.get("/holds");
    assert!(
        page.contains("aria-label=\"Confirm https://host1.example/\""),
        "{page}"
    );
    let release = form_to(&served, "/holds", "/do/release");
    assert!(told(&served, &release).contains("Released https://host1.example/"));
    assert_eq!(notices(&served, "release"), 1);
    hold();
    let question = page_of("/do/confirm", "host", ROOT);
    assert!(served.get(&question).contains("are believed"));
    assert_eq!(notices(&served, "confirm"), 0);
    assert!(told(&served, &form_to(&served, &question, "/do/confirm")).contains("Confirmed"));
    assert_eq!(notices(&served, "confirm"), 1);
}

#[test]
fn hosts_and_everything_are_paused_and_resumed() {
    let served = filled();
    let pauses = || {
        let pauses = served.store.call(|engine| engine.pauses()).expect("read");
        pauses
            .into_iter()
            .map(|pause| pause.what)
            .collect::<Vec<_>>()
    };
    let page = page_of("/host", "root", ROOT);
    assert!(told(&served, &form_to(&served, &page, "/do/pause")).contains("Paused https://host1"));
    assert_eq!(pauses(), [Scope::Host(ROOT.to_owned())]);
    assert!(
        told(&served, &form_to(&served, &page, "/do/resume")).contains("Resumed https://host1")
    );
    assert!(told(&served, &form_to(&served, "/", "/do/pause")).contains("Paused everything"));
    assert_eq!(pauses(), [Scope::All]);
    assert!(served.get("/").contains("Not asking"));
    assert!(told(&served, &form_to(&served, "/", "/do/resume")).contains("Resumed everything"));
    assert_eq!(pauses(), []);
}

#[test]
fn urls_are_added_and_refused_by_their_lines() {
    let served = filled();
    let form = form_to(&served, "/urls", "/do/add");
    let urls = format!("\r\nhttps://new.example/\r\n\r\n  {URL}\r\nmailto:{EVIL}\r\n");
    let said = told(&served, &form.clone().with("urls", &urls));
    assert!(
        said.contains("1 URL new in set added, 1 known, 1 refused; line 5: "),
        "{said}"
    );
    assert_eq!(detail(&served, "https://new.example/").sets, ["added"]);
    for (field, value) in [("urls", " \r\n "), ("set", "")] {
        let form = form_to(&served, "/urls", "/do/add").with("urls", URL);
        let said = told(&served, &form.with(field, value));
        assert!(
            said.contains(&format!("the field {field} is empty")),
            "{said}"
        );
    }
}

#[test]
fn schedules_are_run_paused_and_resumed() {
    // The schedules of the configuration are shown, and those of the operator are performed.
    let config = "[[set]]\nname = \"docs\"\nurls = \"urls.txt\"\n[[schedule]]\nname = \"nightly\"\ncron = \"15 2 * * *\"\n\
                  job = { check = \"docs\" }\n";
    let served = Served::with(AdminLimits::default(), config);
    let page = served.get("/schedules");
    let runs = page.split("<ol class=\"runs\">").nth(1).expect("runs");
    assert_eq!(
        runs.split("</ol>")
            .next()
            .map(|runs| runs.matches("<time datetime=").count()),
        Some(3)
    );
    let run = form_to(&served, "/schedules", "/do/run");
    assert!(
        told(&served, &run).contains("no such schedule"),
        "the operator has none here"
    );
    served.knows_schedules(config);
    let run = form_to(&served, "/schedules", "/do/run");
    assert!(told(&served, &run).contains("Schedule nightly runs"));
    assert!(
        told(
            &served,
            &form_to(&served, "/schedules", "/do/pause-schedule")
        )
        .contains("Paused")
    );
    assert!(served.get("/schedules").contains(">paused</td>"));
    let resume = form_to(&served, "/schedules", "/do/resume-schedule");
    assert!(told(&served, &resume).contains("Resumed"));
}

#[test]
fn no_field_of_a_form_hides_its_outcome() {
    let served = filled();
    let check = || form_to(&served, &page_of("/url", "url", URL), "/do/check");
    for back in [
        "/#top",
        "/urls?state=gone#top",
        "/?said=1",
        "/?said=1#said=2",
    ] {
        let form = check().with("back", back);
        // The first makes the URL due, the others find that it is.
        assert_ne!(told(&served, &form), "", "{back}");
    }
    let most = u64::MAX.to_string();
    let form = check().with("number-of-form", &most);
    assert_ne!(told(&served, &form), "");
}

#[test]
fn only_forms_of_this_service_by_those_who_may_are_performed() {
    let served = filled();
    let form = form_to(&served, &page_of("/url", "url", URL), "/do/check");
    for wrong in ["", "x"] {
        let form = form.clone().with("csrf", wrong);
        let answer = served.post(&form.action, "", &form.body());
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("role=\"alert\""),
            "{answer}"
        );
    }
    // One goes on at no other site, and no text of a form is more than text.
    let evil = form
        .clone()
        .with("back", "//evil.example/")
        .with("url", EVIL);
    assert!(sent(&served, &evil).starts_with("/?said="));
    let page = served.get(&sent(&served, &evil));
    assert!(
        !page.contains("<script>") && !page.contains('\u{202e}'),
        "{page}"
    );
    assert!(served.get("/do/nothing").starts_with("HTTP/1.1 404 "));
    assert_eq!(notices(&served, "recheck"), 1);

    // One who may only read sees no forms, and has nothing done.
    served.token("writer", true, None);
    let reader = served.token("reader", false, None);
    let head = format!("Authorization: Bearer {reader}\r\n");
    for path in [
        "/",
        "/letters",
        "/urls",
        "/holds",
        &page_of("/url", "url", URL),
    ] {
        let page = served.exchange(format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"
        ));
        assert!(
            page.starts_with("HTTP/1.1 200 ") && page.contains("may only read"),
            "{page}"
        );
        assert!(!page.contains("/do/"), "{path}: {page}");
    }
    let answer = served.post(&form.action, &head, &form.body());
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn only_what_cannot_be_undone_is_asked_about() {
    let served = filled();
    for path in [
        "/do/pause?host=",
        "/do/pause?set=a",
        "/do/add?set=a&urls=http://a/",
        "/do/run?schedule=nightly",
        "/do/other",
    ] {
        let page = served.get(path);
        assert!(page.starts_with("HTTP/1.1 404 "), "{path}: {page}");
        assert!(forms(&page).is_empty(), "{path}");
    }
    let question = page_of("/do/confirm", "host", ROOT);
    assert_eq!(forms(&served.get(&question)).len(), 1);
}
