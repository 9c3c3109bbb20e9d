//! Several services on one PostgreSQL store, as operators run them on several machines. Each test waits for a state, never
//! for a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::common::cluster::{Cluster, QUICK};
use crate::common::proxy::Proxy;
use crate::common::service::{PATIENCE, Service, folder, stdout, watch};
use crate::common::{Script, crawler, response, stderr};

/// Web servers, each a host of its own, which tell what was asked for.
struct Sites {
    hosts: Vec<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Sites {
    fn start(count: usize) -> Self {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let hosts = (1..=count).map(|number| {
            let listener = TcpListener::bind(format!("127.0.0.{number}:0")).expect("a port");
            let host = listener.local_addr().expect("an address").to_string();
            let (name, asked) = (host.clone(), Arc::clone(&asked));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (name, asked) = (name.clone(), Arc::clone(&asked));
                    thread::spawn(move || serve(stream, &name, &asked));
                }
            });
            host
        });
        Self {
            hosts: hosts.collect(),
            asked,
        }
    }

    /// This many URLs of each host.
    fn urls(&self, count: usize) -> Vec<String> {
        let of = |host: &String| {
            let host = host.clone();
            (0..count).map(move |page| format!("http://{host}/{page}"))
        };
        self.hosts.iter().flat_map(of).collect()
    }

    /// How often each URL was asked.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for asked in self.asked.lock().expect("no panic").iter() {
            *counts.entry(asked.clone()).or_default() += 1;
        }
        counts
    }
}

fn serve(stream: TcpStream, host: &str, asked: &Mutex<Vec<String>>) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream);
    loop {
        let mut path = None;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        }
        let path = path.unwrap_or_default();
        let status = match &*path {
            "/robots.txt" => "404 Not Found",
            _ => {
                let url = format!("http://{host}{path}");
                asked.lock().expect("no panic").push(url);
                "200 OK"
            }
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The folder of a machine that keeps its lease, however busy it is, and asks as fast as it can.
fn machine(store: &str, urls: &[String]) -> TempDir {
    leasing(store, "300s", urls, "machine", 0)
}

/// The folder of a machine that asks each host for so many URLs a second; 0: as many as it can.
/// Others have its hosts soon after it dies.
fn slow_machine(store: &str, urls: &[String], name: &str, rate: u32) -> TempDir {
    leasing(store, "10s", urls, name, rate)
}

fn leasing(store: &str, lease: &str, urls: &[String], name: &str, rate: u32) -> TempDir {
    let config = format!(
        "[store]\nurl = \"{store}?allow_data_loss=1\"\nlease = \"{lease}\"\n\
         [limits]\nallow_private = true\nper_host_rate = {rate}\nuser_agent = \"{name}\"\n\
         [[set]]\nname = \"docs\"\nurls = \"urls.txt\"\n"
    );
    folder(&config, urls)
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The number that a query prints.
fn number(store: &str, query: &str) -> i64 {
    number_of(Cluster::shared(), store, query)
}

fn number_of(cluster: &Cluster, store: &str, query: &str) -> i64 {
    let database = store.rsplit('/').next().expect("a name");
    let printed = cluster.psql(database, query);
    printed.trim().parse().expect("a number")
}

const ALIVE: &str = "SELECT coalesce(sum(count), 0) FROM watch_count WHERE kind = 0 AND code = 1";

#[test]
#[ignore = "needs postgresql"]
fn each_url_is_asked_by_one_of_the_services() {
    let sites = Sites::start(12);
    let urls = sites.urls(10);
    let store = Cluster::shared().database();
    let machines: Vec<TempDir> = (0..3).map(|_| machine(&store, &urls)).collect();
    let services: Vec<Service> = machines
        .iter()
        .map(|machine| Service::start(machine.path()))
        .collect();
    wait("all URLs are judged", || number(&store, ALIVE) == 120);
    let counts = sites.counts();
    assert_eq!(counts.len(), 120);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let fleet = stdout(&watch(machines[0].path(), &["status", "--fleet"]));
    assert_eq!(
        fleet
            .lines()
            .filter(|line| line.contains("  seen "))
            .count(),
        3,
        "{fleet}"
    );
    // Hosts with nothing to do are nobody's, so that any worker may have them next.
    wait("hosts are given back", || {
        number(&store, "SELECT count(*) FROM host WHERE owner IS NOT NULL") == 0
    });
    // Each of them shows all.
    for service in &services {
        let all = || {
            let (_, metrics) = service.page("/metrics");
            let names = ["courser_fleet_workers 3", "courser_fleet_hosts{"];
            names.map(|name| metrics.matches(name).count()) == [1, 3]
        };
        wait("the metrics show all services", all);
    }
    for service in services {
        service.end();
    }
    assert_eq!(number(&store, "SELECT count(*) FROM worker"), 0);
}

/// What an operator does on one machine holds for all of them.
#[test]
#[ignore = "needs postgresql"]
fn commands_need_no_service_on_the_same_machine() {
    let sites = Sites::start(2);
    let store = Cluster::shared().database();
    let (working, desk) = (machine(&store, &[]), machine(&store, &[]));
    let service = Service::start(working.path());
    let paused = watch(desk.path(), &["pause"]);
    assert_eq!(stderr(&paused), "");
    let status = stdout(&watch(desk.path(), &["status"]));
    assert!(status.contains("paused"), "{status}");
    let urls = sites.urls(2);
    let args: Vec<&str> = ["add", "--set", "by-hand"]
        .into_iter()
        .chain(urls.iter().map(|url| &**url))
        .collect();
    let added = watch(desk.path(), &args);
    assert_eq!((added.status.code(), &*stderr(&added)), (Some(0), ""));
    assert!(watch(desk.path(), &["resume"]).status.success());
    wait("all URLs are judged", || number(&store, ALIVE) == 4);
    let status = stdout(&watch(desk.path(), &["status"]));
    assert!(status.contains("postgres://postgres@127.0.0.1"), "{status}");
    let refused = watch(desk.path(), &["db", "backup", "copy.db"]);
    assert!(stderr(&refused).contains("pg_dump"), "{}", stderr(&refused));
    service.end();
}

/// The server fails in the middle, and comes back: each outcome is applied once.
#[test]
#[ignore = "needs postgresql"]
fn a_server_that_fails_loses_nothing() {
    let sites = Sites::start(4);
    let urls = sites.urls(40);
    let cluster = Cluster::new(&[]);
    let store = cluster.database();
    let machines = ["one", "two"].map(|name| slow_machine(&store, &urls, name, 20));
    let services: Vec<Service> = machines
        .iter()
        .map(|machine| Service::start(machine.path()))
        .collect();
    for least in [20, 60, 100] {
        wait("some URLs are judged", || {
            number_of(&cluster, &store, ALIVE) >= least
        });
        cluster.kill();
        cluster.start();
    }
    wait("all URLs are judged", || {
        number_of(&cluster, &store, ALIVE) == 160
    });
    assert_eq!(
        number_of(&cluster, &store, "SELECT count(*) FROM event"),
        160
    );
    assert_eq!(number_of(&cluster, &store, "SELECT count(*) FROM due"), 160);
    let counts = sites.counts();
    assert_eq!(counts.len(), 160);
    for service in services {
        service.end();
    }
}

/// Workers are killed one after the other, as long as there is something to do.
#[test]
#[ignore = "needs postgresql"]
fn workers_that_are_killed_lose_nothing() {
    let sites = Sites::start(6);
    let urls = sites.urls(30);
    let store = Cluster::shared().database();
    let machines = ["one", "two", "three"].map(|name| slow_machine(&store, &urls, name, 10));
    let mut services: Vec<Service> = machines
        .iter()
        .map(|machine| Service::start(machine.path()))
        .collect();
    for (round, least) in [10, 25, 40, 55, 70, 85].into_iter().enumerate() {
        wait("some URLs are judged", || number(&store, ALIVE) >= least);
        let place = round % machines.len();
        services[place].signal(Signal::KILL);
        services[place].wait();
        services[place] = Service::start(machines[place].path());
    }
    wait("all URLs are judged", || number(&store, ALIVE) == 180);
    assert_eq!(number(&store, "SELECT count(*) FROM event"), 180);
    assert_eq!(number(&store, "SELECT count(*) FROM due"), 180);
    assert_eq!(sites.counts().len(), 180);
    for service in services {
        service.end();
    }
}

#[test]
#[ignore = "needs postgresql"]
fn services_share_the_connections() {
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let host = |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        Script::start(move |_: &str| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            now.fetch_sub(1, Ordering::SeqCst);
            response(200, "", "")
        })
    };
    let hosts: Vec<Script> = (0..12).map(host).collect();
    let store = Cluster::shared().database();
    let machines: Vec<TempDir> = (0..2).map(|_| machine(&store, &[])).collect();
    for machine in &machines {
        let path = machine.path().join("watch.toml");
        let config = std::fs::read_to_string(&path).expect("a configuration");
        let config = config.replace("[limits]", "[limits]\nconnections = 4");
        std::fs::write(&path, config).expect("written");
    }
    let services: Vec<Service> = machines
        .iter()
        .map(|machine| Service::start(machine.path()))
        .collect();
    // Each of them has looked for the others since both are there.
    let looked = "SELECT count(*) FROM worker WHERE seen_at > \
         (SELECT max(joined_at) + interval '3 seconds' FROM worker)";
    wait("both know of each other", || number(&store, looked) == 2);
    let urls: Vec<String> = (0..120)
        .map(|page| hosts[page % hosts.len()].url(&format!("/{page}")))
        .collect();
    let mut words = vec!["add", "--set", "docs"];
    words.extend(urls.iter().map(String::as_str));
    assert!(watch(machines[0].path(), &words).status.success());
    wait("all URLs are judged", || number(&store, ALIVE) == 120);
    let most = most.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most}");
    for service in services {
        service.end();
    }
}

/// The numbers with which these texts begin.
fn numbers<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<i64> {
    let first = |text: &'a str| text.split(|byte: char| !byte.is_ascii_digit()).next();
    let numbers = texts.map(|text| first(text).and_then(|number| number.parse().ok()));
    numbers.collect::<Option<_>>().expect("numbers")
}

/// What was answered while the server was away survives the service, and is not asked again.
#[test]
#[ignore = "needs postgresql"]
fn outcomes_survive_a_service_that_dies_while_the_server_is_away() {
    let sites = Sites::start(3);
    let urls = sites.urls(40);
    let cluster = Cluster::new(&QUICK);
    let store = cluster.database();
    let select = |query: &str| cluster.psql(store.rsplit('/').next().expect("a name"), query);
    let proxy = Proxy::new(cluster.port());
    let machine = slow_machine(&proxy.url(&store), &urls, "one", 20);
    let service = Service::start(machine.path());
    wait("some URLs are judged", || {
        number_of(&cluster, &store, ALIVE) >= 10
    });
    proxy.refuse();
    proxy.cut();
    let spool = machine.path().join("spool/1.jsonl");
    let spooled = || {
        let text = std::fs::read_to_string(&spool).expect("a spool");
        numbers(text.split("\"url\":").skip(1))
    };
    // What was stored just before the cut is in the spool as well if the answer was lost.
    let stored = || numbers(select("SELECT url FROM event").lines());
    wait("something is in the spool alone", || {
        !spooled().is_subset(&stored())
    });
    drop(service);
    let known = &spooled() | &stored();
    let known: Vec<String> = select("SELECT url || ' ' || text FROM url")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(url, _)| known.contains(&url.parse().expect("a number")))
        .map(|(_, text)| text.to_owned())
        .collect();
    proxy.accept();
    let mut service = Service::start(machine.path());
    service.line("outcomes that an earlier process could not store");
    wait("all URLs are judged", || {
        number_of(&cluster, &store, ALIVE) == 120
    });
    let counts = sites.counts();
    assert!(known.iter().all(|url| counts[url] == 1), "{counts:?}");
    assert_eq!(std::fs::metadata(&spool).expect("a spool").len(), 0);
    service.end();
    // Outcomes for another store are not thrown away.
    std::fs::write(&spool, "another\n{}\n").expect("written");
    let refused = watch(machine.path(), &["run"]);
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("store.spool") && text.contains("another store"),
        "{text}"
    );
}

/// A reader of changes outlives a restart of the server, and its place outlives the reader.
#[test]
#[ignore = "needs postgresql"]
fn a_reader_of_changes_waits_for_the_server() {
    let sites = Sites::start(1);
    let cluster = Cluster::new(&QUICK);
    let store = cluster.database();
    let machine = machine(&store, &sites.urls(3));
    let service = Service::start(machine.path());
    wait("all URLs are judged", || {
        number_of(&cluster, &store, ALIVE) == 3
    });
    service.end();
    let config = machine.path().join("watch.toml").display().to_string();
    let args = [
        "watch",
        "export",
        "--config",
        &config,
        "--changes",
        "--cursor",
        "place",
    ];
    let mut command = crawler(&args);
    command.arg("--follow").current_dir(machine.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut follower = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("UTF-8");
    for _ in 0..3 {
        next();
    }
    cluster.stop();
    let mut said = BufReader::new(follower.stderr.take().expect("piped")).lines();
    let line = said.next().expect("a line").expect("UTF-8");
    assert!(line.contains("trying again"), "{line}");
    cluster.start();
    let line = said.next().expect("a line").expect("UTF-8");
    assert!(line.contains("can be read again"), "{line}");
    let more = format!("http://{}/more", sites.hosts[0]);
    assert!(
        watch(machine.path(), &["add", "--set", "by-hand", &more])
            .status
            .success()
    );
    let service = Service::start(machine.path());
    assert!(next().contains("/more"));
    service.end();
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    // The place is written after the line is out: the last change may come again.
    let rest = stdout(
        &crawler(&args)
            .current_dir(machine.path())
            .output()
            .expect("it runs"),
    );
    assert!(rest.lines().count() <= 1, "{rest}");
}
