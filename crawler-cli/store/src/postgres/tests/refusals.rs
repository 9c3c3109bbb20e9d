//! Passwords, and what a server and a database must be.

use super::cluster::{Cluster, QUICK};
use super::{Database, address, open, refused};
use crate::StoreErrorKind;

/// Asks for a password by SCRAM, but not the superuser.
const ASKS: &str =
    "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

#[test]
#[ignore = "needs postgresql"]
fn passwords_come_from_the_address() {
    let cluster = Cluster::with_files(&QUICK, &[("pg_hba.conf", ASKS)]);
    let url = cluster.database();
    let name = url.rsplit('/').next().expect("a name");
    let role =
        format!("CREATE ROLE me LOGIN PASSWORD 'ge:h@im'; ALTER DATABASE {name} OWNER TO me");
    cluster.psql("postgres", &role);
    let with = |user: &str| {
        let url = url.replace("postgres@", user);
        Database::connect(&address(&url, "allow_data_loss=1")).map(drop)
    };
    with("me:ge%3Ah%40im@").expect("the right password");
    for user in ["me:falsch@", "me@"] {
        let error = with(user).expect_err("refused");
        // To try again does not help.
        assert!(
            matches!(error.kind(), StoreErrorKind::Database(_)),
            "{error}"
        );
        let error = error.to_string();
        assert!(
            error.contains("password") && !error.contains("falsch"),
            "{error}"
        );
    }
}

#[test]
#[ignore = "needs postgresql"]
fn a_database_that_is_missing_or_has_another_encoding_is_refused() {
    let cluster = Cluster::shared();
    let error = Database::connect(&address(&cluster.url("missing"), "")).expect_err("refused");
    assert!(
        matches!(error.kind(), StoreErrorKind::Database(_)),
        "{error}"
    );
    assert!(error.to_string().contains("does not exist"), "{error}");
    let name = format!("latin_{}", std::process::id());
    let make = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1'");
    cluster.psql("postgres", &make);
    let error = refused(&address(&cluster.url(&name), "allow_data_loss=1"));
    assert!(
        error.ends_with("the database has the encoding LATIN1: UTF8 is needed"),
        "{error}"
    );
}

#[test]
#[ignore = "needs postgresql"]
fn a_server_that_loses_nothing_is_taken_and_each_setting_is_looked_at() {
    let cluster = Cluster::new(&[]);
    let url = cluster.database();
    let name = url.rsplit('/').next().expect("a name");
    let connect = || Database::connect(&address(&url, "allow_data_loss=0"));
    connect().expect("a store");
    cluster.psql(
        "postgres",
        &format!("ALTER DATABASE {name} SET synchronous_commit = off"),
    );
    let error = connect().expect_err("refused").to_string();
    assert!(error.contains("synchronous_commit is off"), "{error}");
    cluster.psql(
        "postgres",
        &format!("ALTER DATABASE {name} RESET synchronous_commit"),
    );
    cluster.psql("postgres", "ALTER SYSTEM SET full_page_writes = off");
    cluster.restart();
    let error = connect().expect_err("refused").to_string();
    assert!(error.contains("full_page_writes is off"), "{error}");
}

/// A socket of this machine is used as it is, whatever `sslmode` says.
#[test]
#[ignore = "needs postgresql"]
fn sockets_of_this_machine_are_used() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let name = url.rsplit('/').next().expect("a name");
    let folder = cluster.folder().display();
    let url = format!(
        "postgres:///{name}?host={folder}&port={}&user=postgres",
        cluster.port()
    );
    open(&url);
    open(&format!("{url}&sslmode=require"));
}

/// A server that follows another one cannot be written; of several, the one that can be written is used.
#[test]
#[ignore = "needs postgresql"]
fn a_server_that_follows_another_is_refused_or_passed_over() {
    let follower = Cluster::with_files(&QUICK, &[("standby.signal", "")]);
    let leader = Cluster::new(&QUICK);
    let address = |url: &str, query: &str| address(url, &format!("allow_data_loss=1&{query}"));
    let error = Database::connect(&address(&follower.url("postgres"), "")).expect_err("refused");
    assert!(
        matches!(error.kind(), StoreErrorKind::ReadOnly),
        "{error:?}"
    );
    let both = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres",
        follower.port(),
        leader.port()
    );
    let either = address(&both, "target_session_attrs=read-write");
    Database::connect(&either).expect("the leader");
    // The leader is gone: another one may come.
    leader.stop();
    let error = Database::connect(&either).expect_err("no leader");
    assert!(matches!(error.kind(), StoreErrorKind::Away(_)), "{error:?}");
}
