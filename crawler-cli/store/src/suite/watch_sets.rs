//! Tests of sources that are read again, and of what becomes of URLs that nobody wants any more.

use super::watch::{Watch, watch};
use super::*;

pub(crate) fn a_source_that_lost_most_of_it_is_not_believed<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let urls: Vec<String> = (0..10).map(|n| format!("http://a/{n}")).collect();
    let urls: Vec<NewUrl> = urls
        .iter()
        .map(|url| NewUrl::parse(url).expect("a URL"))
        .collect();
    let first = watch.store.begin_reading("docs", at(0)).expect("written");
    watch
        .store
        .read_urls(&first, &urls, at(0))
        .expect("written");
    watch
        .store
        .end_reading(first, "first", at(0), 0.5)
        .expect("written");
    let second = watch.store.begin_reading("docs", at(1)).expect("written");
    watch
        .store
        .read_urls(&second, &urls[..4], at(1))
        .expect("written");
    let swept = watch
        .store
        .end_reading(second.clone(), "second", at(1), 0.5)
        .expect("written");
    assert_eq!(
        swept,
        Swept::Refused {
            lost: 6,
            members: 10
        }
    );
    assert!(!watch.store.sweep(at(2), 100).expect("written"));
    let set = watch.store.sets().expect("readable").remove(0);
    assert_eq!((set.members, set.mark.as_deref()), (10, Some("first")));
    assert_eq!(set.refused, Some((6, 10)));
    // One that failed in the middle ends nothing, and a late end of an earlier one neither.
    let third = watch.store.begin_reading("docs", at(3)).expect("written");
    let accepted = watch.store.accept("docs", at(3)).expect("written");
    assert_eq!(accepted, Accepted::Later);
    watch
        .store
        .read_urls(&third, &urls[..5], at(3))
        .expect("written");
    let late = watch
        .store
        .end_reading(second, "late", at(3), 1.0)
        .expect("written");
    assert_eq!(late, Swept::Overtaken);
    // Half of it is believed.
    let swept = watch
        .store
        .end_reading(third, "third", at(4), 0.5)
        .expect("written");
    assert_eq!(swept, Swept::Lost(5));
    assert!(!watch.store.sweep(at(5), 100).expect("written"));
    assert_eq!(watch.store.watch_counts().expect("readable").urls(), 5);
    let refused = |watch: &mut Watch<E::Store>| watch.store.sets().expect("readable")[0].refused;
    assert_eq!(refused(&mut watch), None);
    // An operator may believe what nobody else does.
    let accept =
        |watch: &mut Watch<E::Store>, set: &str| watch.store.accept(set, at(7)).expect("written");
    assert_eq!(accept(&mut watch, "docs"), Accepted::Nothing);
    let fourth = watch.store.begin_reading("docs", at(6)).expect("written");
    watch
        .store
        .read_urls(&fourth, &urls[..1], at(6))
        .expect("written");
    watch
        .store
        .end_reading(fourth, "fourth", at(6), 0.5)
        .expect("written");
    assert_eq!(refused(&mut watch), Some((4, 5)));
    assert_eq!(accept(&mut watch, "other"), Accepted::Nothing);
    assert_eq!(accept(&mut watch, "docs"), Accepted::Lost(4));
    assert_eq!(refused(&mut watch), None);
    assert!(!watch.store.sweep(at(8), 100).expect("written"));
    let set = watch.store.sets().expect("readable").remove(0);
    assert_eq!((set.members, set.mark.as_deref()), (1, Some("third")));
}

pub(crate) fn urls_are_exported_by_their_numbers<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "HTTP://B", "http://a/2"], at(0));
    watch.submit("other", &["http://c/1", "http://a/2"], at(0));
    watch.answer_all(200, at(1));
    watch
        .store
        .withdraw(
            None,
            &Which::Urls(vec!["http://a/1".into()]),
            at(2),
            None,
            1,
        )
        .expect("written");
    let export = |watch: &mut Watch<E::Store>, which: Which, after: Option<UrlId>, most: usize| {
        let (mut urls, mut last) = (Vec::new(), None);
        let visit = &mut |url: WatchedUrl| {
            urls.push(url.url);
            last = Some(url.id);
            if urls.len() < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        watch.store.export(&which, after, visit).expect("readable");
        (urls, last)
    };
    let (first, last) = export(&mut watch, Which::Everything, None, 2);
    // As they were given.
    assert_eq!(first, ["http://a/1", "HTTP://B"]);
    let (rest, _) = export(&mut watch, Which::Everything, last, 9);
    assert_eq!(rest, ["http://a/2", "http://c/1"]);
    let table = [
        (Which::Set("other".into()), vec!["http://a/2", "http://c/1"]),
        (Which::Set("none".into()), vec![]),
        (Which::Host("http://b/".into()), vec!["HTTP://B"]),
        (
            Which::State(State::Alive),
            vec!["http://a/1", "HTTP://B", "http://a/2", "http://c/1"],
        ),
        (Which::State(State::Gone), vec![]),
        (
            Which::Urls(vec!["http://c/1".into(), "http://b/#x".into()]),
            vec!["HTTP://B", "http://c/1"],
        ),
    ];
    for (which, urls) in table {
        assert_eq!(export(&mut watch, which, None, 9).0, urls);
    }
    let all = events(&mut watch.store, Cursor::START);
    assert!(all.iter().any(|event| event.url == "HTTP://B"));
    assert!(
        watch
            .store
            .show("http://none/")
            .expect("readable")
            .is_none()
    );
}

pub(crate) fn what_is_in_no_set_for_long_is_forgotten<E: Engine>() {
    let (engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2", "http://a/3"], at(0));
    watch.answer_all(200, at(1));
    let leave = |watch: &mut Watch<E::Store>, url: &str, now| {
        let which = Which::Urls(vec![url.to_owned()]);
        watch
            .store
            .withdraw(None, &which, now, None, 1)
            .expect("written");
    };
    leave(&mut watch, "http://a/1", at(10));
    leave(&mut watch, "http://a/3", at(20));
    assert_eq!(watch.store.expire(at(10), 10).expect("written"), 0);
    assert_eq!(watch.store.expire(at(11), 10).expect("written"), 1);
    assert!(watch.store.show("http://a/1").expect("readable").is_none());
    assert!(
        watch
            .store
            .history("http://a/1")
            .expect("readable")
            .is_none()
    );
    assert_eq!(watch.store.expire(at(99), 10).expect("written"), 1);
    assert_eq!(watch.store.expire(at(99), 10).expect("written"), 0);
    let counts = watch.store.watch_counts().expect("readable");
    assert_eq!((counts.kept, counts.urls()), (0, 1));
    assert_eq!(events(&mut watch.store, Cursor::START).len(), 1);
    // Numbers are not used twice, and who comes back is new.
    let last = watch.show("http://a/2").url.id;
    let again = watch.submit("docs", &["http://a/3"], at(100));
    assert_eq!((again.new, again.known), (1, 0));
    assert!(watch.show("http://a/3").url.id.0 > last.0 + 1);
    drop((watch, engine));
}

pub(crate) fn what_a_check_has_learned_is_known_to_watch<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store.add(&[link_to("http://a/1", 1)]).expect("written");
    answer_all(&mut store, 404);
    let mut watch = Watch::new(store);
    let submitted = watch.submit("docs", &["http://a/1"], at(5));
    assert_eq!((submitted.new, submitted.known), (0, 1));
    assert_eq!(watch.show("http://a/1").url.answer, Some(status(404)));
    assert_eq!(watch.due_urls(Lanes::Schedule, at(5)), ["http://a/1"]);
    assert_eq!(watch.store.watch_counts().expect("readable").kept, 0);
    // A check of the same URL disturbs nothing.
    watch.store.begin_run("again", at(6)).expect("written");
    watch
        .store
        .add(&[link_to("http://a/1", 1), link_to("http://a/2", 2)])
        .expect("written");
    answer_all(&mut watch.store, 200);
    assert_eq!(watch.due_urls(Lanes::Schedule, at(7)), ["http://a/1"]);
    let (mut urls, visit) = (0, &mut |_: WatchedUrl| ControlFlow::Continue(()));
    watch
        .store
        .export(&Which::Everything, None, visit)
        .expect("readable");
    watch
        .store
        .export(&Which::Everything, None, &mut |_| {
            urls += 1;
            ControlFlow::Continue(())
        })
        .expect("readable");
    assert_eq!(urls, 1);
}
