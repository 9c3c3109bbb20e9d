//! The suite of the traits on PostgreSQL, and what is particular to PostgreSQL.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::*;
use crate::suite::{Durable, Engine, child, suite};
use crate::{JobStore as _, NewJob, NewUrl, Origin, Place, StoreErrorKind, WatchStore as _};

#[path = "../../../tests/all/common/cluster.rs"]
mod cluster;
#[path = "../../../tests/all/common/proxy.rs"]
mod proxy;

mod away;
mod fleet;
mod refusals;

use cluster::Cluster;

suite!(
    #[ignore = "needs postgresql"]
    Server
);

#[test]
#[ignore = "started and killed by the test `kills`"]
fn killed() {
    child::<Server>();
}

/// A database of its own.
struct Server {
    url: String,
}

impl Engine for Server {
    type Store = Database;

    fn new() -> Self {
        Self {
            url: Cluster::shared().database(),
        }
    }

    fn open(&self) -> Database {
        let address = format!("{}?allow_data_loss=1", self.url);
        Database::connect(&address.parse().expect("an address")).expect("a store")
    }
}

impl Durable for Server {
    const CHILD: &'static str = "postgres::tests::killed";

    fn place(&self) -> String {
        self.url.clone()
    }

    fn at(place: &str) -> Self {
        Self {
            url: place.to_owned(),
        }
    }

    fn check(&self) {
        let report = crate::check(Place::Server(Box::new(address(
            &self.url,
            "allow_data_loss=1",
        ))));
        assert_eq!(report.expect("readable").problems, []);
    }
}

fn address(url: &str, query: &str) -> Address {
    let separator = if url.contains('?') { '&' } else { '?' };
    let text = format!("{url}{separator}{query}");
    text.parse().expect("an address")
}

fn open(url: &str) -> Database {
    Database::connect(&address(url, "allow_data_loss=1")).expect("a store")
}

fn refused(address: &Address) -> String {
    let error = Database::connect(address).expect_err("refused");
    error.to_string()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_760_000_000 + seconds).expect("in range")
}

fn urls(numbers: std::ops::Range<u32>) -> Vec<NewUrl> {
    let url = |number| NewUrl::parse(&format!("http://a.example/{number}")).expect("a URL");
    numbers.map(url).collect()
}

#[test]
#[ignore = "needs postgresql"]
fn a_server_that_may_lose_what_it_has_committed_is_refused() {
    let url = Cluster::shared().database();
    let error = refused(&address(&url, "sslmode=prefer"));
    assert!(error.contains("fsync is off"), "{error}");
    assert!(error.contains("allow_data_loss=1"), "{error}");
    open(&url);
}

#[test]
#[ignore = "needs postgresql"]
fn a_database_with_other_tables_is_refused() {
    let url = Cluster::shared().database();
    let database = url.rsplit('/').next().expect("a name");
    Cluster::shared().psql(database, "CREATE TABLE theirs (number INT)");
    let error = refused(&address(&url, "allow_data_loss=1"));
    assert!(error.ends_with("not a store of crawler-cli"), "{error}");
}

#[test]
#[ignore = "needs postgresql"]
fn what_cannot_be_reached_is_named_without_a_password() {
    // A port at which nobody listens, and which nobody else can take meanwhile.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("a port");
    let address = socket.local_addr().expect("an address").as_socket();
    let port = address.expect("an address of IP").port();
    let text = format!("postgres://me:geheim@127.0.0.1:{port}/urls");
    let error = Database::connect(&text.parse().expect("an address")).expect_err("nobody");
    assert!(matches!(error.kind(), StoreErrorKind::Away(_)), "{error}");
    let error = error.to_string();
    let name = format!("postgres://me@127.0.0.1:{port}/urls: ");
    assert!(
        error.starts_with(&name) && !error.contains("geheim"),
        "{error}"
    );
}

/// Each process makes the tables, and one of them does.
#[test]
#[ignore = "needs postgresql"]
fn processes_that_start_at_once_make_the_tables_once() {
    let url = Cluster::shared().database();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| open(&url).store_id().expect("read")))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(
        !ids[0].is_empty() && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
}

/// Two processes write in turns; each sees what the other has stored, and no number is given twice.
#[test]
#[ignore = "needs postgresql"]
fn processes_share_a_store() {
    let url = Cluster::shared().database();
    let (mut one, mut two) = (open(&url), open(&url));
    for round in 0..5u32 {
        let from = round * 10;
        let new = one.submit("docs", Origin::Hand, &urls(from..from + 10), at(0));
        assert_eq!(new.expect("written").new, 10);
        let half = two.submit("docs", Origin::Hand, &urls(from + 5..from + 10), at(0));
        assert_eq!(half.expect("written").known, 5);
        let job = NewJob::new("mail", format!("{round}").as_bytes());
        let ids = [&mut one, &mut two].map(|store| {
            store
                .enqueue(std::slice::from_ref(&job), at(0))
                .expect("written")
        });
        assert_ne!(ids[0], ids[1]);
    }
    for store in [&mut one, &mut two] {
        assert_eq!(store.watch_counts().expect("read").members, 50);
        assert_eq!(store.job_counts("mail").expect("read").waiting, 10);
        assert!(store.show("http://a.example/49").expect("read").is_some());
    }
}

/// The server ends all connections: the change that was under way fails, and the next one is stored.
#[test]
#[ignore = "needs postgresql"]
fn a_connection_that_was_lost_is_made_again() {
    let url = Cluster::shared().database();
    let mut store = open(&url);
    store
        .submit("docs", Origin::Hand, &urls(0..3), at(0))
        .expect("written");
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let database = url.rsplit('/').next().expect("a name");
    for round in 1..4 {
        Cluster::shared().psql(database, kill);
        let range = round * 3..round * 3 + 3;
        let first = store.submit("docs", Origin::Hand, &urls(range.clone()), at(0));
        if let Err(error) = first {
            assert!(matches!(error.kind(), StoreErrorKind::Away(_)), "{error}");
            let again = store.submit("docs", Origin::Hand, &urls(range), at(0));
            assert_eq!(again.expect("written").new, 3);
        }
        assert_eq!(
            store.watch_counts().expect("read").members,
            u64::from(round + 1) * 3
        );
    }
}

/// The tables are those of SQLite, but for what several machines need.
#[test]
#[ignore = "needs postgresql"]
fn the_tables_are_those_of_sqlite() {
    let url = Cluster::shared().database();
    open(&url);
    let query = "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'public' ORDER BY 1";
    let printed = Cluster::shared().psql(url.rsplit('/').next().expect("a name"), query);
    let here: BTreeSet<&str> = printed.lines().collect();
    let sqlite = Database::temporary().expect("a store");
    let query = "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c \
         WHERE m.type = 'table'";
    let mut query = sqlite.db.sqlite().prepare(query).expect("valid");
    let rows = query.query_map([], |row| row.get(0)).expect("read");
    let there: BTreeSet<String> = rows.collect::<Result<_, _>>().expect("text");
    let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    assert_eq!(there.difference(&here).collect::<Vec<_>>(), [&""; 0]);
    let more: Vec<&str> = here.difference(&there).copied().collect();
    assert_eq!(more, MORE);
}

/// What the tables have that those of SQLite have not.
const MORE: [&str; 14] = [
    "host.owner",
    "host.rest_until",
    "job.worker",
    "store.changes",
    "store.version",
    "task.name",
    "task.owner",
    "worker.joined_at",
    "worker.lease_until",
    "worker.name",
    "worker.process",
    "worker.seen_at",
    "worker.version",
    "worker.worker",
];

#[test]
#[ignore = "needs postgresql"]
fn the_server_is_who_it_has_to_be() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["db.example".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(params, key).expect("an authority");
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["db.example".to_owned()];
    let params = rcgen::CertificateParams::new(names).expect("a name");
    let certificate = params.signed_by(&key, &authority).expect("a certificate");
    let files = [
        ("server.pem", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ];
    let files = files
        .each_ref()
        .map(|(name, content)| (*name, content.as_str()));
    let settings = [
        "ssl=on",
        "ssl_cert_file=server.pem",
        "ssl_key_file=server.key",
        "fsync=off",
    ];
    let cluster = Cluster::with_files(&settings, &files);
    let folder = tempfile::tempdir().expect("a folder");
    let (right, wrong) = (
        folder.path().join("right.pem"),
        folder.path().join("wrong.pem"),
    );
    std::fs::write(&right, authority.pem()).expect("written");
    let other = rcgen::generate_simple_self_signed(["other.example".to_owned()]).expect("one");
    std::fs::write(&wrong, other.cert.pem()).expect("written");
    let url = cluster.database();
    let by_name = url.replace("@127.0.0.1:", "@db.example:");
    let with = |url: &str, roots: &Path| {
        let query = format!(
            "allow_data_loss=1&hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={}",
            roots.display()
        );
        Database::connect(&address(url, &query)).map(drop)
    };
    with(&by_name, &right).expect("the right name");
    for (url, roots) in [(&url, &right), (&by_name, &wrong)] {
        let error = with(url, roots).expect_err("refused").to_string();
        assert!(error.contains("certificate"), "{error}");
    }
    for query in [
        "sslmode=require&allow_data_loss=1",
        "sslmode=prefer&allow_data_loss=1",
    ] {
        let store = Database::connect(&address(&url, query)).expect("any server");
        let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let is_encrypted = store.db.query_row(encrypted, [], |row| row.get::<bool>(0));
        assert!(is_encrypted.expect("read"), "{query}");
    }
    // A server without TLS.
    let plain = Cluster::shared().database();
    open(&plain);
    let error = refused(&address(&plain, "sslmode=require&allow_data_loss=1"));
    assert!(error.contains("TLS"), "{error}");
}

/// All rows of a store, in an order of their own.
fn rows(place: &Place) -> Vec<String> {
    let mut store = place.open_read_only().expect("a store");
    let mut all = Vec::new();
    let visit = &mut |url: crate::WatchedUrl| {
        all.push(format!("{url:?}"));
        std::ops::ControlFlow::Continue(())
    };
    store
        .export(&crate::Which::Everything, None, visit)
        .expect("readable");
    let visit = &mut |event: crate::Event| {
        all.push(format!("{event:?}"));
        std::ops::ControlFlow::Continue(())
    };
    crate::Store::events(&mut store, crate::Cursor::START, visit).expect("readable");
    all.push(format!("{:?}", store.sets().expect("readable")));
    all.push(format!("{:?}", store.watch_counts().expect("readable")));
    all.push(format!(
        "{:?}",
        store.dead_letter_counts().expect("readable")
    ));
    all.push(store.store_id().expect("readable"));
    all
}

/// From a file to a server and back: the same store, which goes on with numbers of its own.
#[test]
#[ignore = "needs postgresql"]
fn a_store_is_copied_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Place::File(folder.path().join("watch.db"));
    let back = Place::File(folder.path().join("back.db"));
    let server = Place::Server(Box::new(address(
        &Cluster::shared().database(),
        "allow_data_loss=1",
    )));
    let mut store = file.open().expect("a store");
    store
        .submit("docs", Origin::Hand, &urls(0..250), at(0))
        .expect("written");
    let ready = store.ready(crate::Lanes::Schedule, at(1), &Default::default(), 9);
    let host = ready.expect("readable")[0].host.id;
    let due = store
        .due(host, crate::Lane::Routine, None, at(1), 100)
        .expect("readable");
    let gone = due.iter().map(|due| fleet::gone(due, at(1)));
    store.judge(&gone.collect::<Vec<_>>()).expect("written");
    let job = NewJob::new("mail", b"\0\xff").with_key("odd \u{1f600}");
    store.enqueue(&[job], at(0)).expect("written");
    drop(store);
    let before = rows(&file);
    let copied = crate::copy(&file, &server).expect("copied");
    assert_eq!(rows(&server), before);
    assert_eq!(crate::check(&server).expect("readable").problems, []);
    let error = crate::copy(&file, &server).expect_err("refused");
    assert!(
        error
            .to_string()
            .ends_with("only an empty one takes a copy"),
        "{error}"
    );
    assert_eq!(crate::copy(&server, &back).expect("copied"), copied);
    assert_eq!(rows(&back), before);
    assert_eq!(crate::check(&back).expect("readable").problems, []);
    for place in [server, back] {
        let mut store = place.open().expect("a store");
        let new = store.submit("more", Origin::Hand, &urls(200..300), at(2));
        assert_eq!(new.expect("written").new, 50);
        store.fire("nightly", at(3), at(3)).expect("written");
        let again = NewJob::new("mail", b"").with_key("odd \u{1f600}");
        let known = store
            .enqueue(&[again, NewJob::new("post", b"")], at(3))
            .expect("written");
        assert!(matches!(known[0], crate::Enqueued::Known(_)));
        drop(store);
        assert_eq!(crate::check(&place).expect("readable").problems, []);
    }
}

/// A process that had the empty store open goes on after what was copied.
#[test]
#[ignore = "needs postgresql"]
fn a_copy_is_seen_by_who_had_the_store_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Place::File(folder.path().join("watch.db"));
    let server = Place::Server(Box::new(address(
        &Cluster::shared().database(),
        "allow_data_loss=1",
    )));
    let mut open = server.open().expect("a store");
    let mut store = file.open().expect("a store");
    store
        .submit("docs", Origin::Hand, &urls(0..50), at(0))
        .expect("written");
    let job = |text: &str| NewJob::new("mail", text.as_bytes());
    store
        .enqueue(&[job("a"), job("b")], at(0))
        .expect("written");
    drop(store);
    crate::copy(&file, &server).expect("copied");
    let new = open
        .submit("docs", Origin::Hand, &urls(40..60), at(1))
        .expect("written");
    assert_eq!((new.new, new.known), (10, 10));
    open.enqueue(&[job("c")], at(1)).expect("written");
    assert_eq!(open.job_counts("mail").expect("read").waiting, 3);
    drop(open);
    assert_eq!(crate::check(&server).expect("readable").problems, []);
}
