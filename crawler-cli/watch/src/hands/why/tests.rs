//! Each reason for which something is not asked, by table.

use std::time::Duration;

use super::*;
use crate::control::GuardOn;
use crate::core::Waiting;
use store::{Host, HostFacts, HostId, UrlId, WatchedUrl};
use verdict::guard::Hold;
use verdict::life::Record;

const ROOT: &str = "https://a.example/";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("in range")
}

fn detail(due: Option<(Lane, Timestamp)>, sets: u32) -> UrlDetail {
    UrlDetail {
        url: WatchedUrl {
            id: UrlId(1),
            url: format!("{ROOT}x"),
            added: now(),
            answer: None,
            life: Record::default(),
            due,
            sets,
            left_at: (sets == 0).then(now),
        },
        host: Host {
            id: HostId(1),
            root: ROOT.to_owned(),
            facts: HostFacts::default(),
        },
        sets: Vec::new(),
        events: Vec::new(),
    }
}

fn live(core: Option<CoreStatus>) -> Live {
    Live::Running(Box::new(LiveStatus {
        process: 1,
        version: "0".to_owned(),
        since: now(),
        store: StoreCondition::Ok,
        core,
    }))
}

fn around() -> Around {
    Around {
        now: now(),
        pauses: Vec::new(),
        hold: None,
        live: live(Some(CoreStatus::default())),
        fleet: None,
    }
}

fn due_now(lane: Lane) -> UrlDetail {
    detail(Some((lane, now())), 1)
}

fn pause(what: Scope) -> Pause {
    Pause {
        what,
        since: now(),
        who: "me".to_owned(),
    }
}

fn waiting(waits: Vec<Waiting>) -> Around {
    let host = HostWaits {
        root: ROOT.to_owned(),
        under_way: 0,
        waiting: 1,
        waits,
    };
    let host = Some(host);
    Around {
        live: live(Some(CoreStatus {
            host,
            ..CoreStatus::default()
        })),
        ..around()
    }
}

#[test]
fn each_reason_is_said() {
    let hold = HostHold {
        host: HostId(1),
        root: ROOT.to_owned(),
        hold: Hold {
            since: now(),
            sampled_at: None,
            was_sample_good: false,
        },
        held: 1,
        ending: None,
    };
    let failing = |store| match live(Some(CoreStatus::default())) {
        Live::Running(status) => Live::Running(Box::new(LiveStatus { store, ..*status })),
        other => other,
    };
    let guard = CoreStatus {
        own_network: Some(GuardOn {
            since: now(),
            why: "canaries".to_owned(),
        }),
        ..CoreStatus::default()
    };
    let draining = CoreStatus {
        is_draining: true,
        ..CoreStatus::default()
    };
    let with_live = |live| Around { live, ..around() };
    let with_pause = |what| Around {
        pauses: vec![pause(what)],
        ..around()
    };
    let later = now() + Duration::from_secs(7_200);
    let routine = || due_now(Lane::Routine);
    let until = Some(now() + Duration::from_secs(600));
    let back_off = Waiting {
        reason: Reason::BackOff,
        until,
    };
    let table: Vec<(UrlDetail, Around, &[&str], &str)> = vec![
        (detail(None, 0), around(), &["in_no_set"], "'watch add'"),
        (
            detail(None, 1),
            around(),
            &["dead_letter"],
            "'watch recheck'",
        ),
        (
            detail(Some((Lane::Routine, later)), 1),
            around(),
            &["not_due"],
            "(in 2 h)",
        ),
        (
            routine(),
            with_live(Live::Absent),
            &["no_service"],
            "'watch run'",
        ),
        (
            routine(),
            with_live(Live::Silent("late".into())),
            &["silent"],
            "late",
        ),
        (routine(), with_live(live(None)), &["silent"], "the core"),
        (
            routine(),
            with_live(failing(StoreCondition::Full)),
            &["disk_full", "others"],
            "until there is room",
        ),
        (
            routine(),
            with_live(failing(StoreCondition::Failing("EIO".into()))),
            &["store", "others"],
            "EIO",
        ),
        (
            routine(),
            with_live(live(Some(guard))),
            &["own_network", "others"],
            "canaries",
        ),
        (
            routine(),
            with_live(live(Some(draining))),
            &["draining", "others"],
            "about to end",
        ),
        (
            routine(),
            with_pause(Scope::All),
            &["paused", "others"],
            "by me",
        ),
        (
            routine(),
            with_pause(Scope::Host(ROOT.into())),
            &["paused", "others"],
            "--host https://a.example/",
        ),
        (
            routine(),
            with_pause(Scope::Host("https://b.example/".into())),
            &["others"],
            "other hosts",
        ),
        (
            due_now(Lane::Held),
            Around {
                hold: Some(hold),
                ..around()
            },
            &["held"],
            "only samples",
        ),
        (due_now(Lane::Doubt), around(), &["cycle"], "reconciling"),
        (
            routine(),
            waiting(vec![back_off]),
            &["back_off"],
            "for 10 min",
        ),
        (routine(), waiting(Vec::new()), &[], ""),
    ];
    for (detail, around, names, part) in table {
        let reasons = of_url(&detail, &around);
        let said: Vec<&str> = reasons.iter().map(|reason| reason.name).collect();
        assert_eq!(said, names, "{reasons:?}");
        let text: String = reasons.iter().map(|reason| &*reason.text).collect();
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_host_waits_for_its_first_url() {
    let host = |next: Option<Timestamp>, next_doubt, urls| HostDetail {
        host: detail(None, 0).host,
        urls,
        held: 0,
        next,
        next_doubt,
    };
    let later = Some(now() + Duration::from_secs(60));
    let due = Some(now());
    for (detail, names) in [
        (host(None, None, 0), &["in_no_set"][..]),
        (host(None, None, 1), &["dead_letter"]),
        (host(later, None, 1), &["not_due"]),
        (host(later, due, 1), &["cycle"]),
        (host(due, later, 1), &["others"]),
    ] {
        let reasons = of_host(&detail, &around());
        let said: Vec<&str> = reasons.iter().map(|reason| reason.name).collect();
        assert_eq!(said, names);
    }
}
