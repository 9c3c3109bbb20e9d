//! Workers that share a store.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::{at, open};
use crate::suite::judged;
use crate::tables::Database;
use crate::{
    DueUrl, FleetStore as _, Guarded, HostId, JobStore as _, Judgement, LEASE, Lane, Lanes, NewJob,
    NewUrl, NewWorker, Origin, Ready, Settled, Settlement, Tenure, WatchStore as _,
};
use plain::random::Random;
use verdict::guard::Stops;
use verdict::life::Profile;
use verdict::{Answer, Verdict};

/// A store with one URL on each of these hosts.
fn filled(hosts: u32) -> String {
    let url = Cluster::shared().database();
    let new = (0..hosts).map(|host| NewUrl::parse(&format!("http://h{host}.example/")));
    let new: Vec<NewUrl> = new.map(|url| url.expect("a URL")).collect();
    let submitted = open(&url).submit("docs", Origin::Hand, &new, at(0));
    submitted.expect("written");
    url
}

pub(super) fn join(url: &str, name: &str, lease: Duration) -> (Database, Tenure) {
    let mut store = open(url);
    let worker = NewWorker {
        name: name.to_owned(),
        process: std::process::id(),
        version: "test".to_owned(),
        lease,
    };
    let tenure = store.join_fleet(&worker).expect("joined");
    (store, tenure)
}

fn ready(store: &mut Database, limit: usize) -> Vec<Ready> {
    let ready = store.ready(Lanes::Schedule, at(1), &HashSet::new(), limit);
    ready.expect("readable")
}

/// Takes hosts until there are no more.
fn all(store: &mut Database) -> HashSet<HostId> {
    let mut all = HashSet::new();
    loop {
        let ready = store
            .ready(Lanes::Schedule, at(1), &all, 10)
            .expect("readable");
        if ready.is_empty() {
            return all;
        }
        all.extend(hosts(&ready));
    }
}

fn hosts(ready: &[Ready]) -> HashSet<HostId> {
    ready.iter().map(|ready| ready.host.id).collect()
}

fn due(store: &mut Database, host: HostId) -> Vec<DueUrl> {
    let due = store.due(host, Lane::Routine, None, at(1), 10);
    due.expect("readable")
}

/// As if the last sign of life of the worker were long ago: the next transaction gives one, and takes over from workers
/// that gave none.
fn forget_beats(store: &mut Database) {
    if let Some(member) = &mut store.memory.member {
        (member.renewed, member.reaped) = (None, None);
    }
}

fn judgement(due: &DueUrl) -> Judgement {
    Judgement {
        id: due.id,
        answer: Some(Answer::of(Verdict::Ok)),
        life: due.life.clone(),
        changes: Vec::new(),
        next: Some((Lane::Routine, at(1_000))),
        dead_letter: None,
    }
}

/// The answer that a URL is gone, with a change of state.
pub(super) fn gone(due: &DueUrl, now: jiff::Timestamp) -> Judgement {
    let rules = Profile::Default.rules();
    judged(due, 410, now, &rules, &mut Random::new(7))
}

/// Waits until something is so.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs postgresql"]
fn a_host_has_one_worker() {
    let url = filled(20);
    let taken: Vec<HashSet<HostId>> = std::thread::scope(|scope| {
        let worker = |name: String| {
            let url = &url;
            scope.spawn(move || {
                let (mut store, tenure) = join(url, &name, LEASE);
                assert!(!tenure.is_over(Instant::now()));
                let mut mine = HashSet::new();
                loop {
                    let ready = store
                        .ready(Lanes::Schedule, at(1), &mine, 2)
                        .expect("readable");
                    if ready.is_empty() {
                        // Until all have looked: a worker that ends gives nothing back.
                        return (mine, store);
                    }
                    mine.extend(hosts(&ready));
                }
            })
        };
        let threads: Vec<_> = (0..4).map(|number| worker(format!("w{number}"))).collect();
        let ended: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        ended.into_iter().map(|(mine, _)| mine).collect()
    });
    let all: HashSet<HostId> = taken.iter().flatten().copied().collect();
    assert_eq!(all.len(), 20);
    assert_eq!(taken.iter().map(HashSet::len).sum::<usize>(), 20);
}

#[test]
#[ignore = "needs postgresql"]
fn what_is_given_back_is_for_others() {
    let url = filled(3);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    let mine = all(&mut one);
    assert_eq!((mine.len(), all(&mut two).len()), (3, 0));
    // What a worker has, it gets again.
    assert_eq!(all(&mut one), mine);
    let kept = mine.iter().copied().next().expect("three");
    assert_eq!(one.release(&HashSet::from([kept])).expect("written"), 2);
    assert_eq!(all(&mut two).len(), 2);
    let workers = two.workers().expect("read");
    let counts: Vec<(&str, u64)> = workers
        .iter()
        .map(|worker| (&*worker.name, worker.hosts))
        .collect();
    assert_eq!(counts, [("one", 1), ("two", 2)]);
    one.leave_fleet().expect("written");
    assert_eq!(all(&mut two).len(), 3);
    assert_eq!(two.workers().expect("read").len(), 1);
}

/// A worker that gave no sign of life is stopped by its own clock first. What it says afterwards changes nothing, and it is
/// a new worker from then on.
#[test]
#[ignore = "needs postgresql"]
fn a_worker_that_was_taken_for_dead_changes_nothing() {
    let url = filled(1);
    let (mut one, tenure) = join(&url, "one", LEASE);
    let host = ready(&mut one, 10)[0].host.id;
    let asked = due(&mut one, host);
    let number = tenure.number();
    let (mut two, _) = join(&url, "two", LEASE);
    assert!(ready(&mut two, 10).is_empty());
    expire(&url, "one");
    forget_beats(&mut two);
    two.beat().expect("written");
    assert_eq!(ready(&mut two, 10)[0].host.id, host);
    assert!(tenure.is_over(Instant::now() + LEASE));
    let late = one.judge(&[judgement(&asked[0])]).expect("written");
    assert_eq!((late.stored, late.stale), (0, 1));
    assert_ne!(tenure.number(), number);
    let own = due(&mut two, host);
    assert_eq!(own.len(), 1);
    let stored = two.judge(&[judgement(&own[0])]).expect("written");
    assert_eq!((stored.stored, stored.stale), (1, 0));
    assert!(due(&mut two, host).is_empty());
}

/// As long as a worker stores answers, its lease does not end.
#[test]
#[ignore = "needs postgresql"]
fn an_answer_is_a_sign_of_life() {
    let url = filled(1);
    let database = url.rsplit('/').next().expect("a name");
    let lease = || Cluster::shared().psql(database, "SELECT lease_until FROM worker");
    let (mut one, tenure) = join(&url, "one", LEASE);
    let host = ready(&mut one, 10)[0].host.id;
    let (number, before) = (tenure.number(), lease());
    let asked = due(&mut one, host);
    forget_beats(&mut one);
    let stored = one.judge(&[judgement(&asked[0])]).expect("written");
    assert_eq!((stored.stored, stored.stale), (1, 0));
    assert_eq!(tenure.number(), number);
    assert_ne!(lease(), before);
}

#[test]
#[ignore = "needs postgresql"]
fn a_task_has_one_worker() {
    let url = filled(1);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    assert!(one.take_task("sets").expect("written"));
    assert!(one.take_task("sets").expect("written"));
    assert!(!two.take_task("sets").expect("written"));
    assert!(two.take_task("set x").expect("written"));
    expire(&url, "one");
    forget_beats(&mut two);
    assert!(two.take_task("sets").expect("written"));
    assert!(!one.take_task("sets").expect("written"));
    two.leave_fleet().expect("written");
    assert!(one.take_task("set x").expect("written"));
}

/// A job belongs to the worker that has started it, as long as the worker is there.
#[test]
#[ignore = "needs postgresql"]
fn jobs_of_a_worker_that_is_gone_are_started_again() {
    let url = filled(1);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    let job = NewJob {
        max_attempts: 3,
        ..NewJob::new("mail", b"hello")
    };
    one.enqueue(&[job], at(0)).expect("written");
    let mine = one.start("mail", at(1), 10).expect("written").jobs;
    assert_eq!(mine.len(), 1);
    assert_eq!(two.start("mail", at(1), 10).expect("written").jobs.len(), 0);
    expire(&url, "one");
    forget_beats(&mut two);
    two.beat().expect("written");
    let again = two.start("mail", at(1), 10).expect("written").jobs;
    assert_eq!(again[0].attempt, 2);
    let done = |job: &crate::StartedJob| Settlement {
        job: job.id,
        attempt: job.attempt,
        settled: Settled::Done,
    };
    let late = one.settle(&[done(&mine[0])], at(2)).expect("written");
    assert_eq!(late.stale, 1);
    let settled = two.settle(&[done(&again[0])], at(2)).expect("written");
    assert_eq!(settled.stale, 0);
    assert_eq!(one.job_counts("mail").expect("read").started, 0);
}

/// Few hosts are spread over all workers.
#[test]
#[ignore = "needs postgresql"]
fn a_worker_takes_its_share() {
    let url = filled(10);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    assert_eq!(ready(&mut one, 100).len(), 5);
    assert_eq!(ready(&mut two, 100).len(), 3);
    assert_eq!(ready(&mut two, 1).len(), 1);
}

/// However many hosts wait, a claim reads those that it takes.
#[test]
#[ignore = "needs postgresql"]
fn a_claim_reads_few_pages() {
    let url = filled(1);
    let database = with_many_hosts(&url);
    let before = pages_of_hosts(database);
    let (mut worker, _) = join(&url, "one", LEASE);
    assert_eq!(ready(&mut worker, 20).len(), 20);
    drop(worker);
    let read = pages_of_hosts(database) - before;
    assert!(read < 1_000, "{read} pages");
}

/// However many answers an old snapshot keeps, a claim does not read them.
#[test]
#[ignore = "needs postgresql"]
fn a_claim_beside_an_old_snapshot_reads_few_pages() {
    let url = filled(1);
    let database = with_many_hosts(&url);
    let (mut one, _) = join(&url, "one", LEASE);
    let taken = hosts(&ready(&mut one, 50));
    assert_eq!(taken.len(), 50);
    let address = super::address(&url, "allow_data_loss=1&application_name=snapshot");
    let mut backup = address.connect().expect("connected");
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET idle_in_transaction_session_timeout = 0; \
         SELECT count(*) FROM host";
    backup.batch_execute(snapshot).expect("read");
    // Each answer moves the time at which its host has something due.
    let answers = "DO $$ DECLARE taken BIGINT[] := ARRAY(SELECT host FROM host WHERE owner IS NOT NULL); BEGIN \
         FOR n IN 1..20000 LOOP UPDATE host SET next_due = next_due + 1 - 2 * (n % 2) WHERE host = taken[1 + n % 50]; \
         END LOOP; END $$";
    Cluster::shared().psql(database, answers);
    drop(one);
    let before = pages_of_hosts(database);
    let (mut two, _) = join(&url, "two", LEASE);
    let free = hosts(&ready(&mut two, 20));
    assert!(!free.is_empty() && free.is_disjoint(&taken));
    drop(two);
    let read = pages_of_hosts(database) - before;
    assert!(read < 1_000, "{read} pages");
    backup.batch_execute("COMMIT").expect("ended");
}

/// An old snapshot keeps each change of a worker's row, and every claim reads them: so most transactions change nothing.
#[test]
#[ignore = "needs postgresql"]
fn a_lease_is_renewed_a_dozen_times_in_its_length() {
    let url = filled(1);
    let database = url.rsplit('/').next().expect("a name");
    let place = |name: &str| {
        let row = format!("SELECT ctid FROM worker WHERE name = '{name}'");
        Cluster::shared().psql(database, &row)
    };
    let lease = Duration::from_secs(3_600);
    let (mut one, tenure) = join(&url, "one", lease);
    let (number, first) = (tenure.number(), place("one"));
    for _ in 0..20 {
        one.beat().expect("written");
        ready(&mut one, 10);
    }
    assert_eq!((tenure.number(), &place("one")), (number, &first));
    forget_beats(&mut one);
    one.beat().expect("written");
    assert_ne!(place("one"), first);
}

/// Adds 100,000 hosts with something due. Returns the name of the database.
fn with_many_hosts(url: &str) -> &str {
    let database = url.rsplit('/').next().expect("a name");
    let wait_for_all = "INSERT INTO host (host, root, next_due, urls) \
         SELECT n, 'http://w' || n || '.example/', n % 1000, 1 FROM generate_series(1000, 100000) AS n";
    Cluster::shared().psql(database, wait_for_all);
    Cluster::shared().psql(database, "VACUUM ANALYZE host");
    database
}

/// Pages of `host` and its indexes that were read until now. Waits for the end of all connections: one that has ended has
/// told what it read.
fn pages_of_hosts(database: &str) -> u64 {
    let cluster = Cluster::shared();
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND application_name <> 'snapshot'";
    wait("the connections end", || {
        cluster.psql(database, others).trim() == "0"
    });
    let read = "SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read \
         FROM pg_statio_user_tables WHERE relname = 'host'";
    let read = cluster.psql(database, read);
    read.trim().parse().expect("a number")
}

/// Ends the lease of a worker.
fn expire(url: &str, name: &str) {
    let database = url.rsplit('/').next().expect("a name");
    let end =
        "UPDATE worker SET lease_until = clock_timestamp() - interval '1 second' WHERE name =";
    Cluster::shared().psql(database, &format!("{end} '{name}'"));
}

#[test]
#[ignore = "needs postgresql"]
fn a_host_that_rests_is_not_claimed() {
    let url = filled(2);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    let resting = ready(&mut one, 1)[0].host.id;
    one.rest(&[(resting, at(500)), (HostId(9_999), at(1))])
        .expect("written");
    one.leave_fleet().expect("written");
    let taken = all(&mut two);
    assert_eq!(taken.len(), 1);
    assert!(!taken.contains(&resting));
    let later = two.ready(Lanes::Schedule, at(500), &taken, 10);
    assert_eq!(hosts(&later.expect("readable")), HashSet::from([resting]));
}

#[test]
#[ignore = "needs postgresql"]
fn tables_of_another_version_are_refused() {
    let url = filled(1);
    let database = url.rsplit('/').next().expect("a name");
    Cluster::shared().psql(database, "UPDATE store SET version = 99");
    let address = super::address(&url, "allow_data_loss=1");
    let error = Database::connect(&address).expect_err("refused");
    assert!(error.to_string().contains("99"), "{error}");
}

/// Each worker has a network of its own, and knows when those of others had failed.
#[test]
#[ignore = "needs postgresql"]
fn the_networks_of_all_workers_are_known() {
    let url = filled(1);
    let (mut one, _) = join(&url, "one", LEASE);
    let (mut two, _) = join(&url, "two", LEASE);
    let stops = |times: &[(i64, Option<i64>)]| -> Stops {
        let times = times.iter();
        times.map(|(from, to)| (at(*from), to.map(at))).collect()
    };
    let whose = Guarded::OwnNetwork;
    one.save_stops(whose, &stops(&[(10, Some(20)), (50, None)]))
        .expect("written");
    two.save_stops(whose, &stops(&[(15, Some(30)), (16, Some(30))]))
        .expect("written");
    assert_eq!(
        one.stops(whose).expect("read"),
        stops(&[(10, Some(20)), (20, Some(30)), (50, None)])
    );
    assert_eq!(
        two.stops(whose).expect("read"),
        stops(&[(10, Some(20)), (20, Some(30))])
    );
}
