//! Servers that are away: refusing, silent, restarted, or behind a network that loses what they say.

use std::time::Duration;

use super::cluster::Cluster;
use super::proxy::{Mode, Proxy};
use super::{Database, address, at, urls};
use crate::{Origin, StoreError, StoreErrorKind, Submitted, WatchStore as _};

/// How long the server of a test may be silent: long enough for a busy machine, and short enough to wait for.
const ANSWER: Duration = Duration::from_secs(10);

fn open(url: &str) -> Database {
    let mut address = address(url, "allow_data_loss=1&connect_timeout=5");
    address.answer = ANSWER;
    Database::connect(&address).expect("a store")
}

fn submit(store: &mut Database, number: u32) -> Result<Submitted, StoreError> {
    store.submit("docs", Origin::Hand, &urls(number..number + 1), at(0))
}

fn assert_away<T>(result: Result<T, StoreError>) {
    let error = result.err().expect("away");
    assert!(matches!(error.kind(), StoreErrorKind::Away(_)), "{error}");
}

/// Submits until the connection is made again.
fn submit_again(store: &mut Database, number: u32) -> Submitted {
    for _ in 0..3 {
        match submit(store, number) {
            Ok(submitted) => return submitted,
            Err(error) => assert_away(Err::<(), _>(error)),
        }
    }
    panic!("the server answers, but the store does not notice");
}

#[test]
#[ignore = "needs postgresql"]
fn a_server_that_stalls_is_away() {
    let proxy = Proxy::new(Cluster::shared().port());
    let url = proxy.url(&Cluster::shared().database());
    let mut store = open(&url);
    submit(&mut store, 0).expect("stored");
    proxy.set(Mode::Stall);
    assert_away(submit(&mut store, 1));
    // Nor can a connection be made.
    assert_away(submit(&mut store, 1));
    assert_away(Database::connect(&address(&url, "connect_timeout=1")));
    proxy.set(Mode::Through);
    submit_again(&mut store, 1);
    assert_eq!(store.watch_counts().expect("read").members, 2);
}

/// The commit was done, and its answer is lost: the same change is repeated, and adds nothing.
#[test]
#[ignore = "needs postgresql"]
fn a_commit_whose_answer_is_lost_is_repeated() {
    let proxy = Proxy::new(Cluster::shared().port());
    let url = Cluster::shared().database();
    let mut store = open(&proxy.url(&url));
    submit(&mut store, 0).expect("stored");
    for number in 1..4 {
        proxy.set(Mode::CutAt(b"COMMIT\0"));
        assert_away(submit(&mut store, number));
        let mut other = Database::connect(&address(&url, "allow_data_loss=1")).expect("a store");
        let count = u64::from(number) + 1;
        assert_eq!(other.watch_counts().expect("read").members, count);
        let again = submit_again(&mut store, number);
        assert_eq!((again.new, again.known), (0, 1));
        assert_eq!(store.watch_counts().expect("read").members, count);
    }
}

#[test]
#[ignore = "needs postgresql"]
fn a_server_that_refuses_cuts_or_restarts_is_away() {
    let cluster = Cluster::new(&[]);
    let proxy = Proxy::new(cluster.port());
    let mut store = open(&proxy.url(&cluster.database()));
    submit(&mut store, 0).expect("stored");
    proxy.refuse();
    submit(&mut store, 1).expect("the connection stays");
    proxy.cut();
    assert_away(submit(&mut store, 2));
    assert_away(submit(&mut store, 2));
    proxy.accept();
    submit_again(&mut store, 2);
    cluster.restart();
    submit_again(&mut store, 3);
    cluster.kill();
    assert_away(submit(&mut store, 4));
    cluster.start();
    submit_again(&mut store, 4);
    cluster.pause();
    assert_away(submit(&mut store, 5));
    cluster.resume();
    submit_again(&mut store, 5);
    assert_eq!(store.watch_counts().expect("read").members, 6);
}
