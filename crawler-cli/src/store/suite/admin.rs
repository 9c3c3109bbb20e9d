//! Tests of what the operator's page, the API and webhooks keep.

use super::*;

pub(crate) fn tokens_have_names_of_their_own<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let token = |id: &str, name: &str, may_write| StoredToken {
        id: id.to_owned(),
        name: name.to_owned(),
        hash: vec![1, 2, 3],
        may_write,
        made_at: at(0),
        expires_at: may_write.then_some(at(90)),
        made_by: "me".to_owned(),
    };
    let (scrape, deploy) = (token("b", "scrape", false), token("a", "deploy", true));
    assert!(store.save_token(&scrape).expect("written"));
    assert!(store.save_token(&deploy).expect("written"));
    for other in [token("c", "scrape", true), token("a", "third", true)] {
        assert!(!store.save_token(&other).expect("known"), "{other:?}");
    }
    assert_eq!(
        store.tokens().expect("readable"),
        [deploy.clone(), scrape.clone()]
    );
    assert!(store.remove_token("scrape").expect("written"));
    assert!(!store.remove_token("scrape").expect("not there"));
    assert_eq!(store.tokens().expect("readable"), [deploy]);
    assert!(store.save_token(&scrape).expect("written"));
}

pub(crate) fn samples_are_kept_for_long<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    for (seconds, data) in [(300, "b"), (0, "a"), (300, "c")] {
        store.save_sample(at(seconds), data).expect("written");
    }
    let (first, second) = ((at(0), "a".to_owned()), (at(300), "c".to_owned()));
    let since = |store: &mut E::Store, seconds| store.samples(at(seconds)).expect("readable");
    assert_eq!(since(&mut store, 0), [first.clone(), second.clone()]);
    assert_eq!(since(&mut store, 1), std::slice::from_ref(&second));
    let late = at(SAMPLES_LAST.as_secs());
    store.save_sample(late, "d").expect("written");
    let third = (late, "d".to_owned());
    assert_eq!(since(&mut store, 0), [first, second.clone(), third]);
    let late = at(SAMPLES_LAST.as_secs() + 1);
    store.save_sample(late, "e").expect("written");
    assert_eq!(since(&mut store, 0)[0], second);
}

pub(crate) fn an_answer_is_remembered_for_a_while<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let answer = |seconds| Remembered {
        request: vec![seconds as u8; 32],
        status: 202,
        answer: format!("{{\"new\":{seconds}}}"),
        at: at(seconds),
    };
    assert_eq!(store.remembered("k1").expect("readable"), None);
    for seconds in 1..=5 {
        let key = format!("k{seconds}");
        store.remember(&key, &answer(seconds)).expect("written");
    }
    store.remember("k2", &answer(9)).expect("written");
    let remembered = |store: &mut E::Store, key: &str| store.remembered(key).expect("readable");
    assert_eq!(remembered(&mut store, "k1"), Some(answer(1)));
    assert_eq!(remembered(&mut store, "k2"), Some(answer(9)));
    store.remember("l1", &answer(9)).expect("written");
    for (prefix, most, count) in [("k", 9, 5), ("k", 3, 3), ("l", 9, 1), ("m", 9, 0)] {
        let counted = store.count_remembered(prefix, most);
        assert_eq!(counted.expect("readable"), count, "{prefix}");
    }
    for (limit, forgotten) in [(2, 2), (9, 1), (9, 0)] {
        let done = store.forget_remembered(at(5), limit).expect("written");
        assert_eq!(done, forgotten);
    }
    let left = (1..=5).filter(|number| remembered(&mut store, &format!("k{number}")).is_some());
    assert_eq!(left.collect::<Vec<_>>(), [2, 5]);
}

pub(crate) fn a_receiver_is_told_from_now_on<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let start = HookState {
        receiver: "ops".to_owned(),
        address: String::new(),
        events: Cursor::START,
        damped: Cursor::START,
        damped_at: None,
        notices: NoticeId::START,
        letters: Turn::START,
        stopped: None,
    };
    assert_eq!(store.hook("ops").expect("readable"), None);
    assert_eq!(store.new_hook("ops").expect("readable"), start);
    let notice = Notice {
        at: at(0),
        kind: "guard".to_owned(),
        host: None,
        who: None,
        text: String::new(),
    };
    let noted = store.note(&notice).expect("written");
    let letter = NewDeadLetter {
        reason: "invalid_url".to_owned(),
        attempts: 1,
        last: String::new(),
        first_at: at(0),
        last_at: at(0),
    };
    let text = Buried::Text("http://[".to_owned());
    store.bury(&text, &letter).expect("written");
    let told = store.letters_told_after(Turn::START, 9).expect("readable");
    let mut hook = store.new_hook("ops").expect("readable");
    assert_eq!((hook.notices, hook.letters), (noted, told[0].0));
    hook.damped_at = Some(at(7));
    hook.address = "a1b2".to_owned();
    hook.stopped = Some((at(8), "410 Gone".to_owned()));
    let other = HookState {
        receiver: "chat".to_owned(),
        ..start
    };
    for state in [&hook, &other] {
        store.save_hook(state).expect("written");
    }
    assert_eq!(store.hook("ops").expect("readable").as_ref(), Some(&hook));
    assert_eq!(store.hooks().expect("readable"), [other, hook.clone()]);
    hook.stopped = None;
    store.save_hook(&hook).expect("written");
    store.forget_hook("chat").expect("written");
    assert_eq!(store.hooks().expect("readable"), [hook]);

    let message = NewMessage {
        receiver: "ops".to_owned(),
        topic: "gone".to_owned(),
        body: Vec::new(),
    };
    store.post(&vec![message; 5], at(0)).expect("written");
    for (limit, waiting) in [(3, 3), (9, 5)] {
        let counted = store.outbox_waiting("ops", limit).expect("readable");
        assert_eq!(counted, waiting);
    }
    assert_eq!(store.outbox_waiting("chat", 9).expect("readable"), 0);
    store.forget_hook("ops").expect("written");
    assert_eq!(store.outbox_waiting("ops", 9).expect("readable"), 0);
}

pub(crate) fn stores_have_different_ids<E: Engine>() {
    let (one, other) = (E::new(), E::new());
    let id = |engine: &E| engine.open().store_id().expect("readable");
    assert_ne!(id(&one), id(&other));
    assert!(id(&one).len() == 8 && id(&one).bytes().all(|byte| byte.is_ascii_hexdigit()));
}
