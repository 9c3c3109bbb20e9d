//! Memory is bounded however much there is at a time: short runs of what the `scale` tool does, whose numbers do not depend
//! on the machine.

use benches::scale::hosts::{Idle, unused, visit};

#[test]
fn hosts_that_were_visited_leave_nothing() {
    let steps = visit(&[20_000, 60_000]).expect("answers");
    println!("{steps:?}");
    let [early, late] = steps[..] else {
        panic!("two steps")
    };
    // Those with connections, those that had some a moment ago, and those with calls.
    assert!(late.most_entries <= 900 + 1024 + 64, "{late:?}");
    // The cache of names is full before the first count.
    assert!(!late.grows_from(&early), "{steps:?}");
}

#[test]
fn a_live_host_is_small() {
    let idle = Idle::new(2000).expect("answers");
    println!("{} bytes, and {} for a name", idle.each, idle.name);
    assert!(idle.each <= 2048.0, "{}", idle.each);
    let unused = unused(1000).expect("answers");
    println!("{unused:?}");
    assert!(unused.each <= 2048.0, "{unused:?}");
}
