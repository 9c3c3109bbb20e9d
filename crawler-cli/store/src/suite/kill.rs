//! A process that writes is killed at seeded moments, and the next one goes on: nothing is lost, and nothing is applied
//! twice.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::thread;

use super::*;
use plain::random::Random;

/// Engines whose stores another process can open.
pub(crate) trait Durable: Engine {
    /// The name of the ignored test that calls [`child`]: `crate::path::name` without the crate.
    const CHILD: &'static str;

    /// What the child needs to find the place.
    fn place(&self) -> String;

    /// The place that a parent made.
    fn at(place: &str) -> Self;

    /// Everything that the engine itself can say about the state of its store.
    fn check(&self);
}

/// How many URLs a run has.
const URLS: u32 = 200;

/// What the process that is killed does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    Run,
    Watch,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Watch => "watch",
        }
    }

    /// The line that says what is completed.
    pub(super) fn completed(self, said: &[impl AsRef<str>]) -> String {
        let said: Vec<&str> = said.iter().map(AsRef::as_ref).collect();
        format!("{COMPLETED}{}", said.join(" "))
    }
}

pub(crate) fn kills<E: Durable>() {
    kill_all::<E>(What::Run, |store, told, seed| {
        let is_over = is_over(store, told, seed);
        if is_over {
            finished(store);
        }
        is_over
    });
}

pub(crate) fn kills_while_watching<E: Durable>() {
    kill_all::<E>(What::Watch, watch_kill::is_over);
}

/// Kills as often as `COURSER_KILLS` says; 4 times if it says nothing.
fn kill_all<E: Durable>(what: What, is_over: impl Fn(&mut E::Store, &Told, u64) -> bool) {
    let kills = env::var("COURSER_KILLS").ok();
    let kills: u64 = kills.and_then(|text| text.parse().ok()).unwrap_or(4);
    let mut seed = 0;
    let mut killed = 0;
    while killed < kills {
        let engine = E::new();
        let mut told = Told::default();
        let mut random = Random::new(seed);
        loop {
            let (lines, was_killed) = run_child(&engine, what, &mut random);
            told.take(&lines);
            // The child may have been killed before it made the store.
            drop(engine.open());
            engine.check();
            killed += u64::from(was_killed);
            if is_over(&mut engine.open(), &told, seed) {
                break;
            }
        }
        seed += 1;
    }
}

/// What children said that they had done, after the store had said so.
#[derive(Default)]
pub(super) struct Told {
    pub(super) completed: HashSet<String>,
}

impl Told {
    fn take(&mut self, lines: &[String]) {
        let completed = lines.iter().filter_map(|line| line.strip_prefix(COMPLETED));
        for urls in completed {
            self.completed.extend(urls.split(' ').map(str::to_owned));
        }
    }
}

/// Runs a child until it ends or is killed: after some of its lines, and a moment.
fn run_child<E: Durable>(engine: &E, what: What, random: &mut Random) -> (Vec<String>, bool) {
    let lines = random.next_number() % 25;
    let moment = Duration::from_micros(random.next_number() % 3000);
    let mut child = Command::new(env::current_exe().expect("a path"))
        .args([
            "--exact",
            E::CHILD,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PLACE, engine.place())
        .env(WHAT, what.name())
        .env(SEED, random.next_number().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut said = Vec::new();
    while (said.len() as u64) < lines {
        let mut line = String::new();
        if output.read_line(&mut line).expect("readable") == 0 {
            break;
        }
        said.extend(completion(&line));
        if line.trim() == "end" {
            break;
        }
    }
    // The kill hits whatever the child does after that line.
    thread::sleep(moment);
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    // What was said before the kill, and not read yet.
    for line in output.lines() {
        let Ok(line) = line else { break };
        said.extend(completion(&line));
    }
    assert!(
        status.success() || status.signal() == Some(9),
        "{status}: {said:?}"
    );
    (said, !status.success())
}

/// What a line says about a completion. The name of the test may be before it.
fn completion(line: &str) -> Option<String> {
    let from = line.find(COMPLETED)?;
    Some(line[from..].trim_end().to_owned())
}

const COMPLETED: &str = "completed ";
const PLACE: &str = "COURSER_KILL_PLACE";
const SEED: &str = "COURSER_KILL_SEED";
const WHAT: &str = "COURSER_KILL_WHAT";

/// The process that is killed: continues the run, and says what it has done.
pub(crate) fn child<E: Durable>() {
    let Ok(place) = env::var(PLACE) else {
        return;
    };
    let seed = env::var(SEED).ok().and_then(|text| text.parse().ok());
    let mut random = Random::new(seed.expect("a number"));
    let mut store = E::at(&place).open();
    if env::var(WHAT).is_ok_and(|what| what == What::Watch.name()) {
        watch_kill::child(store, &mut random);
        return;
    }
    store.begin_run("kill", at(0)).expect("written");
    let links: Vec<Link> = (0..URLS)
        .map(|n| link_to(&format!("http://host{}/{n}", n % 3), n + 1))
        .collect();
    let mut rest = &links[..];
    while !rest.is_empty() || !queued(&mut store).is_empty() {
        let (now, later) = rest.split_at((random.next_number() as usize % 40).min(rest.len()));
        store.add(now).expect("written");
        rest = later;
        answer_some(&mut store, &mut random);
    }
    store.end_run(at(100)).expect("written");
    say("end");
}

fn answer_some(store: &mut impl Store, random: &mut Random) {
    let entries = queued(store);
    let count = random.next_number() as usize % 20;
    let completed: Vec<Completed> = entries.iter().take(count).map(completed).collect();
    store.complete(&completed).expect("written");
    let urls: Vec<&str> = entries
        .iter()
        .take(count)
        .map(|queued| queued.url.as_str())
        .collect();
    if !urls.is_empty() {
        say(&What::Run.completed(&urls));
    }
    // What is replayed changes nothing.
    if random.next_number().is_multiple_of(4) {
        store.complete(&completed).expect("written");
    }
}

fn completed(queued: &Queued) -> Completed {
    let change = Change {
        at: at(1),
        from: State::New,
        to: State::Alive,
        status: Some(200),
        why: "ok".to_owned(),
    };
    let mut completed = Completed {
        changes: vec![change],
        ..Completed::new(queued, status(200))
    };
    // Some pages have links, which are asked, too.
    if queued.url.as_str().ends_with('7') {
        let child = format!("{}/below", queued.url);
        completed
            .links
            .push(in_page(link_to(&child, 1), queued.url.as_str()));
    }
    completed
}

pub(super) fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    let said = writeln!(output, "{line}").and_then(|()| output.flush());
    said.expect("the parent listens");
}

/// Checks what holds at any moment. Returns whether the run has ended.
fn is_over(store: &mut impl Store, told: &Told, seed: u64) -> bool {
    let run = store.begin_run("kill", at(0)).expect("written");
    let mut changed = HashSet::new();
    for event in events(store, Cursor::START) {
        assert!(
            changed.insert(event.url.clone()),
            "seed {seed}: twice {}",
            event.url
        );
    }
    for url in &told.completed {
        assert!(changed.contains(url), "seed {seed}: lost {url}");
    }
    let waiting: HashSet<String> = queued_urls(store).into_iter().collect();
    for url in &changed {
        let known = store.history(url).expect("readable").expect("known");
        assert_eq!(known.answer, Some(status(200)), "seed {seed}: {url}");
        assert!(!waiting.contains(url), "seed {seed}: asked again {url}");
        // The links of a page are stored with its answer.
        if url.ends_with('7') && run.is_resumed {
            let below = format!("{url}/below");
            let is_known = changed.contains(&below) || waiting.contains(&below);
            assert!(is_known, "seed {seed}: lost {below}");
        }
    }
    !run.is_resumed && !changed.is_empty()
}

/// What holds at the end.
fn finished(store: &mut impl Store) {
    let changed: HashSet<String> = events(store, Cursor::START)
        .into_iter()
        .map(|event| event.url)
        .collect();
    let pages = (0..URLS).filter(|n| n % 10 == 7).count();
    assert_eq!(changed.len(), URLS as usize + pages);
}
