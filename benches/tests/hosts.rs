//! A crawl over very many hosts keeps memory bounded: a short run of the `hosts` tool, on the simulated network, whose
//! numbers do not depend on the machine.

use benches::hosts::{live, visit};

#[test]
fn hosts_that_were_visited_leave_nothing() {
    let visited = visit(20_000, 60_000).expect("answers");
    println!("{visited:?}");
    // Those with connections, those that had some a moment ago, and those with calls.
    assert!(visited.most_entries <= 900 + 1024 + 64, "{visited:?}");
    // The cache of names is full before the first count.
    assert!(!visited.grows(), "{visited:?}");
}

#[test]
fn a_live_host_is_small() {
    let live = live(2000).expect("answers");
    println!("{live:?}");
    assert!(live.connected <= 2048.0, "{live:?}");
    assert!(live.unused <= 2048.0, "{live:?}");
}
