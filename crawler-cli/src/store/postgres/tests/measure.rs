//! Prints what a URL costs the server.
//!
//! `COURSER_URLS=100000 cargo test --release -p crawler-cli --lib what_a_url_costs_the_server -- --ignored --nocapture`

use std::collections::HashSet;
use std::env;
use std::fs;
use std::time::Instant;

use super::cluster::Cluster;
use super::fleet::join;
use super::{at, open};
use crate::check::Verdict;
use crate::check::life::{Context, Profile};
use crate::crawl::random::Random;
use crate::store::{Answer, DueUrl, Judgement, LEASE, Lane, Lanes, NewUrl, WatchStore as _};

#[test]
#[ignore = "needs postgresql; prints what URLs cost"]
fn what_a_url_costs_the_server() {
    let number = |name: &str, default: u64| {
        let given = env::var(name).ok();
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let urls = number("COURSER_URLS", 5_000);
    let hosts = number("COURSER_HOSTS", 100).min(urls);
    let cluster = Cluster::new(&["fsync=on", "shared_buffers=256MB", "max_wal_size=4GB"]);
    let url = cluster.database();
    let mut store = open(&url);
    step(&cluster, "submitted", urls, || {
        let reading = store.begin_reading("all", at(0)).expect("written");
        for from in (0..urls).step_by(1_000) {
            let name = |number| {
                format!(
                    "https://h{}.example.com/some/path/of/files/number-{number:08}.html",
                    number % hosts
                )
            };
            let batch = (from..urls.min(from + 1_000))
                .map(|number| NewUrl::parse(&name(number)).expect("a URL"));
            let batch: Vec<NewUrl> = batch.collect();
            store.read_urls(&reading, &batch, at(0)).expect("written");
        }
        store
            .end_reading(reading, "mark", at(0), 0.5)
            .expect("written");
    });
    let (mut store, _) = join(&url, "one", LEASE);
    let mut random = Random::new(1);
    for round in 1..=2 {
        step(&cluster, "judged", urls, || {
            let now = at(round * 1_000_000_000);
            loop {
                let ready = store
                    .ready(Lanes::Schedule, now, &HashSet::new(), 256)
                    .expect("read");
                if ready.is_empty() {
                    break;
                }
                let due = ready.iter().flat_map(|ready| {
                    store
                        .due(ready.host.id, Lane::Routine, None, now, 64)
                        .expect("read")
                });
                let due: Vec<DueUrl> = due.collect();
                for batch in due.chunks(512) {
                    let batch = batch.iter().map(|due| judgement(due, now, &mut random));
                    let batch: Vec<Judgement> = batch.collect();
                    store.judge(&batch).expect("written");
                }
            }
        });
    }
    let database = url.rsplit('/').next().expect("a name");
    let hot = "SELECT relname || ': ' || n_tup_upd || ' updates, ' || n_tup_hot_upd || ' HOT, ' || n_dead_tup || ' dead of ' \
         || n_live_tup || ', ' || pg_total_relation_size(relid) || ' bytes' FROM pg_stat_user_tables \
         WHERE n_tup_upd + n_tup_ins > 50 ORDER BY relname";
    println!("{}", cluster.psql(database, hot));
}

fn judgement(due: &DueUrl, now: jiff::Timestamp, random: &mut Random) -> Judgement {
    let mut life = due.life.clone();
    let rules = Profile::Default.rules();
    let verdict = (Verdict::Ok, Some(200));
    let decision = rules.decide(now, &mut life, verdict, &Context::default(), random);
    Judgement {
        id: due.id,
        answer: Some(Answer {
            status: Some(200),
            checked_at: Some(now),
            ..Answer::of(Verdict::Ok)
        }),
        life,
        changes: Vec::new(),
        next: Some((Lane::Routine, decision.due)),
        dead_letter: None,
    }
}

/// Prints how long a step took, and how much processor time of the server.
fn step(cluster: &Cluster, name: &str, urls: u64, work: impl FnOnce()) {
    let (began, used) = (Instant::now(), processor_time(cluster));
    work();
    let used = (processor_time(cluster) - used) * 1e6 / urls as f64;
    let each = began.elapsed().as_secs_f64() * 1e6 / urls as f64;
    println!(
        "{name}: {used:.1} µs of the server's processor time for each URL, {each:.1} µs in all"
    );
}

/// The seconds that the processes of the server have used.
fn processor_time(cluster: &Cluster) -> f64 {
    let first = fs::read_to_string(cluster.folder().join("data/postmaster.pid"));
    let first = first
        .expect("readable")
        .lines()
        .next()
        .expect("a number")
        .to_owned();
    let mut ticks = 0u64;
    for process in fs::read_dir("/proc").expect("Linux").flatten() {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let Some((id, rest)) = stat.split_once(" (") else {
            continue;
        };
        let Some((_, rest)) = rest.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = rest.split(' ').collect();
        if id == first || fields[1] == first {
            // Fields 14 to 17 of proc(5): of the process, and of its children that have ended.
            let count = |place: usize| fields[place].parse::<u64>().unwrap_or(0);
            ticks += count(11)
                + count(12)
                + if id == first {
                    count(13) + count(14)
                } else {
                    0
                };
        }
    }
    ticks as f64 / 100.0
}
