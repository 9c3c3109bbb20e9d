//! What a run does, step by step.

use super::*;

pub(crate) fn each_url_is_queued_once<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let added = store.add(&[
        link_to("http://a/1", 1),
        link_to("http://b:8080/2", 2),
        link_to("http://a/1", 3),
        link_to("http://user:word@a/1", 4),
    ]);
    let added = added.expect("written");
    let roots: Vec<&str> = added.new_hosts.iter().map(|host| &*host.root).collect();
    assert_eq!(roots, ["http://a/", "http://b:8080/"]);
    let (a, b) = (added.new_hosts[0].id, added.new_hosts[1].id);
    assert_eq!(added.queued, [(a, 1), (b, 1), (a, 1)]);
    let again = store.add(&[link_to("http://a/1", 5), link_to("http://a/3", 6)]);
    let again = again.expect("written");
    assert!(again.new_hosts.is_empty());
    assert_eq!(again.queued, [(a, 1)]);
    let urls = queued_urls(&mut store);
    assert_eq!(
        urls,
        [
            "http://a/1",
            "http://user:word@a/1",
            "http://a/3",
            "http://b:8080/2"
        ]
    );
    assert_eq!(
        records(&mut store, Selection::All),
        [
            ("http://a/1".to_owned(), None, vec![1, 3, 5]),
            ("http://b:8080/2".to_owned(), None, vec![2]),
            ("http://user:word@a/1".to_owned(), None, vec![4]),
            ("http://a/3".to_owned(), None, vec![6]),
        ]
    );
}

pub(crate) fn a_queue_is_read_from_any_entry<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let links: Vec<Link> = (0..100)
        .map(|n| link_to(&format!("http://a/{n}"), n + 1))
        .collect();
    let host = store.add(&links).expect("written").new_hosts[0].id;
    let mut after = EntryId::START;
    let mut urls = Vec::new();
    loop {
        let queued = store.take(host, after, 7).expect("readable");
        let again = store.take(host, after, 7).expect("readable");
        assert_eq!(
            queued.iter().map(|queued| queued.id).collect::<Vec<_>>(),
            again.iter().map(|queued| queued.id).collect::<Vec<_>>()
        );
        let Some(last) = queued.last() else { break };
        after = last.entry;
        urls.extend(queued.into_iter().map(|queued| String::from(queued.url)));
    }
    let expected: Vec<String> = (0..100).map(|n| format!("http://a/{n}")).collect();
    assert_eq!(urls, expected);
    assert_eq!(store.counts().expect("readable").queued, 100);
}

pub(crate) fn what_is_completed_is_never_completed_again<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store
        .add(&[link_to("http://a/1", 1), link_to("http://a/2", 2)])
        .expect("written");
    let entries = queued(&mut store);
    let mut first = Completed::new(&entries[0], status(200));
    first.changes.push(Change {
        at: at(1),
        from: State::New,
        to: State::Alive,
        status: Some(200),
        why: "ok".to_owned(),
    });
    store
        .complete(std::slice::from_ref(&first))
        .expect("written");
    // A replay, with another answer, and with links that would be new.
    let mut replay = Completed::new(&entries[0], status(404));
    replay.changes.clone_from(&first.changes);
    replay.links.push(link_to("http://a/3", 3));
    let added = store.complete(&[replay]).expect("written");
    assert!(added.queued.is_empty());
    assert_eq!(events(&mut store, Cursor::START).len(), 1);
    assert_eq!(queued_urls(&mut store), ["http://a/2"]);
    let judged = records(&mut store, Selection::Judged);
    assert_eq!(judged, [("http://a/1".to_owned(), Some(200), vec![1])]);
    let unjudged = records(&mut store, Selection::Unjudged);
    assert_eq!(unjudged, [("http://a/2".to_owned(), None, vec![2])]);
    let counts = store.counts().expect("readable");
    assert_eq!(
        counts.classes.into_iter().collect::<Vec<_>>(),
        [(Class::Ok, 1)]
    );
    assert_eq!(counts.queued, 1);
}

pub(crate) fn answers_are_read_as_they_were_written<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let links: Vec<Link> = (0..4)
        .map(|n| link_to(&format!("http://a/{n}"), n + 1))
        .collect();
    store.add(&links).expect("written");
    let full = Answer {
        verdict: Verdict::Failed(Cause::Status5xx(503)),
        detail: Some("überlastet".to_owned()),
        status: Some(503),
        method: Some("GET"),
        moved_to: Some("https://a/new".to_owned()),
        final_url: Some("https://a/new#part".to_owned()),
        redirects: vec![
            Redirect {
                status: 301,
                url: "https://a/\"quoted\"".to_owned(),
            },
            Redirect {
                status: 308,
                url: "https://a/new".to_owned(),
            },
        ],
        attempts: 3,
        latency: Some(Duration::from_micros(1_234_567)),
        address: Some([127, 0, 0, 1].into()),
        checked_at: Some(at(7)),
    };
    let answers = [
        full.clone(),
        Answer::of(Verdict::Ok),
        Answer {
            address: Some([1, 2, 3, 4, 5, 6, 7, 8u16].into()),
            ..status(404)
        },
        Answer::of(Verdict::Void(Some(Cause::Status4xx(418)))),
    ];
    let entries = queued(&mut store);
    let life = Life::default();
    let completed: Vec<Completed> = entries
        .iter()
        .zip(&answers)
        .map(|(queued, answer)| Completed {
            judged: Some((answer.clone(), Some(life.clone()))),
            ..Completed::new(queued, answer.clone())
        })
        .collect();
    store.complete(&completed).expect("written");
    let mut read = Vec::new();
    let ids: Vec<UrlId> = entries.iter().map(|queued| queued.id).collect();
    let visit = &mut |record: Record| {
        assert_eq!(record.life, Some(Life::default()));
        assert!(!record.is_reused);
        read.push(record.answer.expect("judged"));
        ControlFlow::Continue(())
    };
    store.records_of(&ids, visit).expect("readable");
    assert_eq!(read, answers);
    let known = store
        .history("http://a/0#part")
        .expect("readable")
        .expect("known");
    assert_eq!((known.answer, known.life), (Some(full), Some(life)));
    assert_eq!(known.url, "http://a/0");
    assert!(store.history("http://a/9").expect("readable").is_none());
}

pub(crate) fn late_links_to_judged_urls_are_told<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store
        .add(&[link_to("http://a/1", 1), link_to("http://a/2", 2)])
        .expect("written");
    let entries = queued(&mut store);
    store
        .complete(&[Completed::new(&entries[0], status(200))])
        .expect("written");
    let late = [
        link_to("http://a/2", 3),
        link_to("http://a/1", 4),
        spelled(link_to("http://a/1", 5), "http://A/1"),
    ];
    let added = store.add(&late).expect("written");
    let told: Vec<(usize, UrlId)> = added
        .judged
        .iter()
        .map(|late| (late.index, late.id))
        .collect();
    assert_eq!(told, [(1, entries[0].id), (2, entries[0].id)]);
    let record = store
        .record(added.judged[1].link)
        .expect("readable")
        .expect("known");
    assert_eq!(
        summary(record),
        ("http://A/1".to_owned(), Some(200), vec![5])
    );
    assert!(added.queued.is_empty());
}

const PRIVATE: Demand = Demand {
    given: false,
    private: true,
    links: false,
    depth: 0,
};
const LINKS: Demand = Demand {
    links: true,
    private: false,
    ..PRIVATE
};

pub(crate) fn a_demand_that_grows_while_a_url_is_asked_is_met_later<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store.add(&[link_to("http://a/1", 1)]).expect("written");
    let taken = queued(&mut store);
    store
        .add(&[wanted_link("http://a/1", 2, LINKS)])
        .expect("written");
    let added = store
        .complete(&[Completed::new(&taken[0], status(200))])
        .expect("written");
    assert_eq!((added.queued.len(), added.again), (1, vec![taken[0].id]));
    let bare = Demand {
        links: false,
        ..LINKS
    };
    let later = [
        wanted_link("http://a/1", 3, LINKS),
        wanted_link("http://a/1", 4, bare),
    ];
    let added = store.add(&later).expect("written");
    let is_met: Vec<bool> = added.judged.iter().map(|late| late.is_met).collect();
    assert_eq!(is_met, [false, true]);
    let again = queued(&mut store);
    assert_eq!(
        again[0].demand,
        Demand {
            given: true,
            ..LINKS
        }
    );
    let added = store
        .complete(&[Completed::new(&again[0], status(200))])
        .expect("written");
    assert!(added.queued.is_empty() && added.again.is_empty());
}

pub(crate) fn what_is_local_is_judged_at_once<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let written = |line, written: &str| {
        let mut link = local_link("file:///missing.md", line, Cause::FileMissing);
        link.reference.written = Some(written.to_owned());
        link
    };
    let added = store.add(&[
        written(1, "missing.md"),
        written(2, "../missing.md"),
        // The same text as a URL that is asked.
        local_link("http://a/1", 3, Cause::InvalidUrl),
        link_to("http://a/1", 4),
    ]);
    let added = added.expect("written");
    assert_eq!(added.judged.len(), 3);
    assert_eq!(queued_urls(&mut store), ["http://a/1"]);
    let mut read = Vec::new();
    let visit = &mut |record: Record| {
        assert_eq!((record.host, record.life), (None, None));
        let answer = record.answer.expect("judged");
        assert_eq!(answer.detail.as_deref(), Some("no such file"));
        let written = record.references.into_iter().map(|place| place.written);
        read.push((record.spelling, answer.verdict, written.collect::<Vec<_>>()));
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, Selection::Judged, visit)
        .expect("readable");
    let expected = [
        (
            "file:///missing.md".to_owned(),
            Verdict::Failed(Cause::FileMissing),
            ["missing.md", "../missing.md"]
                .map(|it| Some(it.to_owned()))
                .to_vec(),
        ),
        (
            "http://a/1".to_owned(),
            Verdict::Failed(Cause::InvalidUrl),
            vec![None],
        ),
    ];
    assert_eq!(read, expected);
    assert_eq!(store.counts().expect("readable").classes[&Class::Soft], 2);
    // What is wrong in the next run may be something else.
    store.end_run(at(1)).expect("written");
    store.begin_run("test", at(2)).expect("written");
    store
        .add(&[local_link("file:///missing.md", 1, Cause::FragmentMissing)])
        .expect("written");
    let mut causes = Vec::new();
    let visit = &mut |record: Record| {
        causes.push(record.answer.and_then(|answer| answer.verdict.cause()));
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, Selection::Judged, visit)
        .expect("readable");
    assert_eq!(causes, [Some(Cause::FragmentMissing)]);
}

pub(crate) fn the_next_run_knows_the_past<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store
        .add(&[link_to("http://a/1", 1), link_to("http://a/2", 2)])
        .expect("written");
    answer_all(&mut store, 200);
    store.end_run(at(1)).expect("written");
    let run = store.begin_run("test", at(2)).expect("written");
    assert_eq!((run.number, run.began, run.is_resumed), (2, at(2), false));
    let added = store
        .add(&[link_to("http://a/2", 1), link_to("http://a/3", 2)])
        .expect("written");
    assert_eq!(added.new_hosts.len(), 1);
    assert!(added.judged.is_empty());
    assert!(records(&mut store, Selection::Judged).is_empty());
    let entries = queued(&mut store);
    let pasts: Vec<Option<(Option<u16>, bool)>> = entries
        .iter()
        .map(|queued| {
            queued
                .past
                .as_ref()
                .map(|past| (past.answer.status, past.in_this_run))
        })
        .collect();
    assert_eq!(pasts, [Some((Some(200), false)), None]);
    // The old answer is good enough.
    let reused = Completed {
        judged: None,
        ..Completed::new(&entries[0], status(500))
    };
    store
        .complete(&[reused, Completed::new(&entries[1], status(404))])
        .expect("written");
    let mut read = Vec::new();
    let visit = &mut |record: Record| {
        read.push((
            record.is_reused,
            record.answer.and_then(|answer| answer.status),
        ));
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, Selection::Judged, visit)
        .expect("readable");
    assert_eq!(read, [(true, Some(200)), (false, Some(404))]);
}

pub(crate) fn pages_bring_links<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store
        .add(&[wanted_link("http://a/", 1, LINKS)])
        .expect("written");
    let entries = queued(&mut store);
    let deeper = Demand { depth: 1, ..LINKS };
    let mut page = Completed::new(&entries[0], status(200));
    page.links
        .push(in_page(wanted_link("http://a/", 3, deeper), "http://a/"));
    page.links
        .push(in_page(wanted_link("http://b/1", 4, deeper), "http://a/"));
    let added = store.complete(&[page]).expect("written");
    // The page refers to itself: it is nearer than its own link, and judged.
    assert_eq!(
        added
            .judged
            .iter()
            .map(|late| late.index)
            .collect::<Vec<_>>(),
        [0]
    );
    assert_eq!(added.new_hosts.len(), 1);
    assert_eq!(queued_urls(&mut store), ["http://b/1"]);
    let mut sources = Vec::new();
    let visit = &mut |record: Record| {
        sources.extend(
            record
                .references
                .into_iter()
                .map(|reference| reference.source),
        );
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, Selection::All, visit)
        .expect("readable");
    assert_eq!(
        sources.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["urls.txt", "http://a/", "http://a/"]
    );
    // A page that turns out to be nearer is read again, for the depth of its links.
    let entries = queued(&mut store);
    store
        .complete(&[Completed::new(&entries[0], status(200))])
        .expect("written");
    let added = store
        .add(&[wanted_link("http://b/1", 2, LINKS)])
        .expect("written");
    assert_eq!(added.queued.len(), 1);
}

pub(crate) fn hosts_keep_what_was_learned<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let added = store
        .add(&[link_to("http://a/1", 1), link_to("http://b/1", 2)])
        .expect("written");
    let (a, b) = (&added.new_hosts[0], &added.new_hosts[1]);
    assert_eq!(a.facts, HostFacts::default());
    let facts = HostFacts {
        no_head_until: Some(at(1)),
        head_lies_until: Some(at(2)),
        answered_at: Some(at(3)),
        control: Some(Control {
            at: at(4),
            status: Some(200),
        }),
        episodes: vec![
            Episode {
                ended: at(5),
                length: Duration::from_millis(86_400_001),
            },
            Episode {
                ended: at(6),
                length: Duration::from_secs(1),
            },
        ],
    };
    let silent = HostFacts {
        control: Some(Control {
            at: at(4),
            status: None,
        }),
        ..facts.clone()
    };
    store
        .save_hosts(&[(a.id, facts.clone()), (b.id, silent.clone())])
        .expect("written");
    let known: Vec<HostFacts> = waiting(&mut store)
        .into_iter()
        .map(|host| host.facts)
        .collect();
    assert_eq!(known, [facts.clone(), silent]);
    store.end_run(at(7)).expect("written");
    store.begin_run("test", at(8)).expect("written");
    let added = store.add(&[link_to("http://a/2", 1)]).expect("written");
    assert_eq!(
        (&added.new_hosts[0].id, &added.new_hosts[0].facts),
        (&a.id, &facts)
    );
    store
        .save_hosts(&[(a.id, HostFacts::default())])
        .expect("written");
    assert_eq!(waiting(&mut store)[0].facts, HostFacts::default());
}

pub(crate) fn events_have_cursors<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let links: Vec<Link> = (0..5)
        .map(|n| link_to(&format!("http://a/{n}"), n + 1))
        .collect();
    store.add(&links).expect("written");
    let change = |from, to, seconds| Change {
        at: at(seconds),
        from,
        to,
        status: (seconds % 2 == 0).then_some(404),
        why: "status_404".to_owned(),
    };
    let entries = queued(&mut store);
    let completed: Vec<Completed> = entries
        .iter()
        .zip(0..)
        .map(|(queued, n)| Completed {
            changes: vec![
                change(State::New, State::Suspect, n),
                change(State::Suspect, State::Broken, n),
            ],
            ..Completed::new(queued, status(404))
        })
        .collect();
    store.complete(&completed[..2]).expect("written");
    let first = events(&mut store, Cursor::START);
    assert_eq!(first.len(), 4);
    store.complete(&completed[2..]).expect("written");
    let rest = events(&mut store, first[3].cursor);
    assert_eq!(rest.len(), 6);
    let all: Vec<Cursor> = first
        .iter()
        .chain(&rest)
        .map(|event| event.cursor)
        .collect();
    assert!(all.is_sorted_by(|a, b| a < b));
    assert_eq!(
        (
            &*rest[0].url,
            rest[0].at,
            rest[0].from,
            rest[0].to,
            rest[0].status,
            &*rest[0].why
        ),
        (
            "http://a/2",
            at(2),
            State::New,
            State::Suspect,
            Some(404),
            "status_404"
        )
    );
    assert_eq!(rest[2].status, None);
    let known = store
        .history("http://a/3")
        .expect("readable")
        .expect("known");
    assert_eq!(known.events, [rest[2].clone(), rest[3].clone()]);
}

pub(crate) fn records_stop_and_go_on<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let links: Vec<Link> = (0..20)
        .map(|n| link_to(&format!("http://a/{n}"), n + 1))
        .collect();
    store.add(&links).expect("written");
    let (mut last, mut lines) = (LinkId::START, Vec::new());
    loop {
        let (after, before) = (last, lines.len());
        let visit = &mut |record: Record| {
            last = record.link;
            lines.extend(summary(record).2);
            if lines.len() % 7 == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        store
            .records(after, Selection::All, visit)
            .expect("readable");
        if lines.len() == before {
            break;
        }
    }
    assert_eq!(lines, (1..=20).collect::<Vec<u32>>());
}

pub(crate) fn long_and_odd_texts_are_kept<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let long = format!("http://a/{}", "long/".repeat(20_000));
    let spelling = "http://a/ä b\"'%00;--";
    let mut odd = spelled(link_to("http://a/odd", 2), spelling);
    odd.reference.text = "Zeile 1\nZeile 2 \u{1F600}".to_owned();
    odd.reference.source = "söurce; DROP TABLE url.md".into();
    odd.reference.column = Some(u32::MAX);
    store
        .add(&[link_to(&long, 1), odd.clone()])
        .expect("written");
    assert_eq!(queued_urls(&mut store), [&*long, "http://a/odd"]);
    let mut all = Vec::new();
    let visit = &mut |record: Record| {
        all.push(record);
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, Selection::All, visit)
        .expect("readable");
    assert_eq!(all[0].spelling, long);
    assert_eq!(
        (&*all[1].spelling, &all[1].references),
        (spelling, &vec![odd.reference])
    );
}

pub(crate) fn an_interrupted_run_goes_on<E: Engine>() {
    let (engine, mut store) = begun::<E>();
    let links: Vec<Link> = (0..5)
        .map(|n| link_to(&format!("http://a/{n}"), n + 1))
        .collect();
    store.add(&links).expect("written");
    let entries = queued(&mut store);
    let completed: Vec<Completed> = entries[..2]
        .iter()
        .map(|queued| Completed::new(queued, status(200)))
        .collect();
    store.complete(&completed).expect("written");
    drop(store);

    let mut store = engine.open();
    let run = store.begin_run("test", at(9)).expect("written");
    assert_eq!((run.number, run.began, run.is_resumed), (1, at(0), true));
    // The sources are read again: a link is new, one is gone.
    let mut again = links[1..].to_vec();
    again.push(link_to("http://a/9", 9));
    let added = store.add(&again).expect("written");
    assert_eq!(added.judged.len(), 1);
    assert_eq!(added.new_hosts.len(), 1);
    assert_eq!(
        queued_urls(&mut store),
        ["http://a/2", "http://a/3", "http://a/4", "http://a/9"]
    );
    // What was under way when the run was interrupted is not known to be answered.
    let old = Completed::new(&entries[2], status(200));
    store.complete(&[old]).expect("written");
    assert_eq!(queued(&mut store).len(), 4);
    answer_all(&mut store, 200);
    let judged = records(&mut store, Selection::Judged);
    let lines: Vec<u32> = judged.into_iter().flat_map(|(_, _, lines)| lines).collect();
    assert_eq!(lines, [2, 3, 4, 5, 9]);
    store.end_run(at(10)).expect("written");
    assert!(!store.begin_run("test", at(11)).expect("written").is_resumed);
}

pub(crate) fn an_interrupted_run_keeps_the_links_of_pages<E: Engine>() {
    let (engine, mut store) = begun::<E>();
    let given = Demand {
        given: true,
        ..LINKS
    };
    // A page that was given is its own source.
    let start = Link {
        reference: place("http://a/", 1),
        ..wanted_link("http://a/", 1, given)
    };
    store
        .add(&[
            start.clone(),
            // First places that are read again, with further ones in a page.
            link_to("http://a/1", 2),
            link_to("http://a/2", 3),
            spelled(link_to("http://a/2", 4), "http://A/2"),
        ])
        .expect("written");
    let entries = queued(&mut store);
    let mut page = Completed::new(&entries[0], status(200));
    let deeper = Demand { depth: 1, ..LINKS };
    for (link, line) in [
        ("http://a/1", 11),
        ("http://A/2", 12),
        ("http://a/3", 13),
        ("http://a/1", 14),
    ] {
        page.links.push(in_page(
            spelled(wanted_link(link, line, deeper), link),
            "http://a/",
        ));
    }
    store.complete(&[page]).expect("written");
    drop(store);

    let mut store = engine.open();
    assert!(store.begin_run("test", at(9)).expect("written").is_resumed);
    assert_eq!(waiting(&mut store).len(), 1);
    let mut left = records(&mut store, Selection::All);
    left.sort();
    assert_eq!(
        left,
        [
            ("http://A/2".to_owned(), None, vec![12]),
            ("http://a/1".to_owned(), None, vec![11, 14]),
            ("http://a/3".to_owned(), None, vec![13]),
        ]
    );
    // The sources come again.
    let added = store
        .add(&[
            start,
            link_to("http://a/1", 2),
            link_to("http://a/2", 3),
            spelled(link_to("http://a/2", 4), "http://A/2"),
        ])
        .expect("written");
    assert!(added.new_hosts.is_empty());
    assert_eq!(
        added
            .judged
            .iter()
            .map(|late| late.index)
            .collect::<Vec<_>>(),
        [0]
    );
    let mut urls = queued_urls(&mut store);
    urls.sort();
    assert_eq!(urls, ["http://a/1", "http://a/2", "http://a/3"]);
    for queued in queued(&mut store) {
        assert!(queued.demand.links, "{queued:?}");
    }
    let mut all = records(&mut store, Selection::All);
    all.sort();
    assert_eq!(
        all,
        [
            ("http://A/2".to_owned(), None, vec![12, 4]),
            ("http://a/".to_owned(), Some(200), vec![1]),
            ("http://a/1".to_owned(), None, vec![11, 14, 2]),
            ("http://a/2".to_owned(), None, vec![3]),
            ("http://a/3".to_owned(), None, vec![13]),
        ]
    );
}

pub(crate) fn another_identity_is_another_run<E: Engine>() {
    let (engine, mut store) = begun::<E>();
    store.add(&[link_to("http://a/1", 1)]).expect("written");
    answer_all(&mut store, 200);
    drop(store);
    let mut store = engine.open();
    let run = store.begin_run("other", at(9)).expect("written");
    assert_eq!((run.number, run.is_resumed), (2, false));
    store.add(&[link_to("http://a/1", 1)]).expect("written");
    assert_eq!(queued(&mut store).len(), 1);
    drop(store);
    // Only the last run can be continued.
    let mut store = engine.open();
    let run = store.begin_run("test", at(10)).expect("written");
    assert_eq!((run.number, run.is_resumed), (3, false));
}
