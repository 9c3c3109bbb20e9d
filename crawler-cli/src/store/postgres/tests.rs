//! The suite of the traits on PostgreSQL, and what is particular to PostgreSQL.

use super::*;
use crate::store::suite::{Durable, Engine, child, suite};

#[path = "../../../tests/common/cluster.rs"]
mod cluster;

use cluster::Cluster;

suite!(#[ignore = "needs postgresql"] durable Server);

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
        let client = postgres::Client::connect(&self.url, postgres::NoTls).expect("connected");
        Database::connect(&self.url, client).expect("a store")
    }
}

impl Durable for Server {
    const CHILD: &'static str = "store::postgres::tests::killed";

    fn place(&self) -> String {
        self.url.clone()
    }

    fn at(place: &str) -> Self {
        Self {
            url: place.to_owned(),
        }
    }

    fn check(&self) {}
}
