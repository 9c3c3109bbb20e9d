//! What becomes of jobs that fail, hang, panic or are interrupted, and when schedules fire.

use super::*;

fn find_job() -> JobConfig {
    JobConfig::Find {
        start: Url::parse("http://h.test/").expect("a URL"),
        args: Vec::new(),
        into_set: "x".to_owned(),
    }
}

#[test]
fn a_job_that_panics_is_a_dead_letter_and_others_run() {
    let (mut service, server) = (Service::new(), map_server());
    let http = Http::default().allow_private();
    let tools = Tools::new(service.store.clone(), http);
    let tools = tools.find_reader(|_, _| -> Result<Find, String> { panic!("no such luck") });
    service.tools = Arc::new(tools);
    let planner = service.planner(vec![
        schedule("panics", find_job()),
        schedule("works", reading(&server)),
    ]);
    service.run(&planner, "panics", 2);
    until("a dead letter", || !service.letters().is_empty());
    let letter = &service.letters()[0].letter;
    assert_eq!((&*letter.reason, letter.attempts), ("panic", 2));
    assert!(letter.last.contains("no such luck"), "{letter:?}");
    service.run(&planner, "works", 2);
    until("a success", || {
        service.state("works").last_success.is_some()
    });
}

static RELEASED: AtomicBool = AtomicBool::new(false);

#[test]
fn a_job_that_hangs_and_hears_nothing_is_given_up_and_the_next_one_runs() {
    let mut service = Service::new();
    let tools = Tools::new(service.store.clone(), Http::default());
    let tools = tools.find_reader(|_, _| -> Result<Find, String> {
        while !RELEASED.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        Err("late".to_owned())
    });
    service.tools = Arc::new(tools);
    let mut hang = schedule("hang", find_job());
    hang.timeout = Some(Duration::from_millis(100));
    hang.max_attempts = NonZeroU32::MIN;
    let planner = service.planner(vec![hang]);
    service.run(&planner, "hang", 1);
    until("a dead letter", || service.letters().len() == 1);
    assert_eq!(service.letters()[0].letter.reason, "time_limit");
    // The thread is stuck, and another one does the work.
    service.run(&planner, "hang", 1);
    until("a second one", || service.letters().len() == 2);
    RELEASED.store(true, Ordering::SeqCst);
    planner.drain(Duration::from_secs(60));
    // The late results have changed nothing.
    assert!(
        service
            .letters()
            .iter()
            .all(|letter| letter.letter.reason == "time_limit")
    );
}

#[test]
fn a_drain_keeps_jobs_that_run_and_does_not_count_their_attempt() {
    let service = Service::new();
    let is_first = AtomicBool::new(true);
    let server = Script::start(move |_| match is_first.swap(false, Ordering::SeqCst) {
        true => Answer::Stall,
        false => a_map().into(),
    });
    let mut job = schedule("long", reading(&server));
    job.max_attempts = NonZeroU32::MIN;
    let planner = service.planner(vec![job.clone()]);
    service.run(&planner, "long", 1);
    until("the job runs", || !server.requests().is_empty());
    let drained = planner.drain(Duration::from_secs(600));
    assert_eq!((drained.kept, drained.left), (1, 0));
    assert_eq!(service.state("long").last_success, None);
    assert_eq!(service.busy(&queue_of("long")), 1);
    let planner = service.planner(vec![job]);
    until("a success", || service.state("long").last_success.is_some());
    assert_eq!(service.letters().len(), 0);
    drop(planner);
}

#[test]
fn firings_that_were_missed_are_made_up_for_once() {
    let service = Service::new();
    let store = service.store.clone();
    let last: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
    let next: Timestamp = "2021-01-01T00:00:00Z".parse().expect("a time");
    let fired = store.call(move |store| {
        for name in ["once", "skip"] {
            store.fire(name, last, last)?;
            let change = ScheduleChange {
                next: Some(Some(next)),
                ..ScheduleChange::default()
            };
            store.update_schedule(name, &change)?;
        }
        Ok(())
    });
    fired.expect("writable");
    let years = u64::try_from(Timestamp::now().to_zoned(TimeZone::UTC).year() - 2020);
    let years = years.expect("after 2020");
    let (server, skipped) = (map_server(), map_server());
    let mut skip = schedule("skip", reading(&skipped));
    skip.catch_up = CatchUp::Skip;
    let planner = service.planner(vec![schedule("once", reading(&server)), skip]);
    until("one has run", || {
        service.state("once").last_success.is_some()
    });
    until("the other was counted", || {
        service.state("skip").missed == years
    });
    assert_eq!(service.state("once").missed, years - 1);
    drop(planner);
    // A restart makes up for nothing again.
    let planner = service.planner(vec![schedule("once", reading(&server))]);
    service.run(&planner, "once", 2);
    until("two runs", || server.requests().len() == 2);
    until("the run has ended", || service.busy(&queue_of("once")) == 0);
    drop(planner);
    assert_eq!((server.requests().len(), skipped.requests().len()), (2, 0));
}

#[test]
fn a_firing_during_a_run_is_left_out_or_waits() {
    for (overlap, overlapped, runs) in [(Overlap::Forbid, 1, 1), (Overlap::QueueOne, 0, 2)] {
        let service = Service::new();
        let (end, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let server = Script::start(move |_| {
            // An error means that the job may end.
            let _ = gate.lock().expect("no test panicked here").recv();
            a_map()
        });
        let mut job = schedule("long", reading(&server));
        job.overlap = overlap;
        let planner = service.planner(vec![job.clone()]);
        service.run(&planner, "long", 2);
        until("it runs", || !server.requests().is_empty());
        // Its time has come meanwhile.
        let next: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
        let planned = service.store.call(move |store| {
            let change = ScheduleChange {
                next: Some(Some(next)),
                ..ScheduleChange::default()
            };
            store.update_schedule("long", &change)
        });
        planned.expect("writable");
        planner.look();
        until("it was decided", || {
            service.state("long").last_fired.is_some()
        });
        assert_eq!(service.state("long").overlapped, overlapped);
        drop(end);
        until("all has ended", || service.busy(&queue_of("long")) == 0);
        assert_eq!(server.requests().len(), runs, "{overlap:?}");
        drop(planner);
    }
}

#[test]
fn a_paused_schedule_does_not_fire() {
    let (service, server) = (Service::new(), map_server());
    let next: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
    let set = |paused: bool| {
        let change = ScheduleChange {
            next: Some(Some(next)),
            paused: Some(paused),
            ..ScheduleChange::default()
        };
        let done = service
            .store
            .call(move |store| store.update_schedule("nightly", &change));
        done.expect("writable");
    };
    set(true);
    let job = schedule("nightly", reading(&server));
    let planner = service.planner(vec![job]);
    planner.look();
    service.run(&planner, "nightly", 2);
    until("a success", || {
        service.state("nightly").last_success.is_some()
    });
    assert_eq!(service.state("nightly").last_fired, None);
    set(false);
    planner.look();
    until("it fires", || service.state("nightly").last_fired.is_some());
}

/// The part that runs in a process of its own, which its job kills.
#[test]
fn process_that_its_job_kills() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let (store, _) = open(Path::new(&folder));
    let tools = Tools::new(store, Http::default()).find_reader(|_, _| {
        let folder = std::env::var_os(FOLDER).expect("a folder");
        let log = Path::new(&folder).join("log");
        let log = File::options().create(true).append(true).open(log);
        writeln!(log.expect("a log"), "run").expect("room");
        rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).expect("a signal");
        Err("it goes on".to_owned())
    });
    let planner = Planner::start(vec![killer()], Vec::new(), Arc::new(tools));
    until("killed", || false);
    drop(planner);
}

/// Names the folder of the process that its job kills.
const FOLDER: &str = "COURSER_TEST_JOB_FOLDER";

fn killer() -> ScheduleConfig {
    schedule("killer", find_job())
}

#[test]
fn a_job_that_kills_the_process_is_a_dead_letter_after_its_attempts() {
    let service = Service::new();
    let Service {
        folder,
        store,
        tools,
    } = service;
    let twice = NonZeroU32::new(2).expect("not 0");
    let job = firing_job("killer", Timestamp::now(), twice);
    let now = Timestamp::now();
    let stored = store.call(move |store| store.enqueue(std::slice::from_ref(&job), now));
    stored.expect("writable");
    drop(tools);
    store.close(Duration::from_secs(20)).expect("closed");
    drop(store);
    for _ in 0..2 {
        let mut child = Command::new(std::env::current_exe().expect("a program"));
        child.args([
            "--exact",
            "watch_jobs::life::process_that_its_job_kills",
            "--nocapture",
        ]);
        let status = child
            .env(FOLDER, folder.path())
            .output()
            .expect("a process")
            .status;
        assert!(!status.success());
    }
    let (store, tools) = open(folder.path());
    let planner = Planner::start(vec![killer()], Vec::new(), tools).expect("threads");
    until("a dead letter", || letters(&store).len() == 1);
    let letter = &letters(&store)[0].letter;
    assert_eq!((&*letter.reason, letter.attempts), ("poison", 2));
    let log = fs::read_to_string(folder.path().join("log")).expect("a log");
    assert_eq!(log.lines().count(), 2);
    drop(planner);
}
