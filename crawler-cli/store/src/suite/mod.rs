//! Tests of the trait. Each engine runs all of them: `suite!(MyEngine)`.

mod admin;
mod job_model;
mod jobs;
mod kill;
mod letters;
mod model;
mod runs;
mod watch;
mod watch_guards;
mod watch_kill;
mod watch_model;
mod watch_sets;

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};
use url::Url;

use super::*;
use plain::redirect::Redirect;
use verdict::Answer;
use verdict::life::{Record as Life, State};
use verdict::{Cause, Class, Reference, Verdict};

pub(crate) use admin::*;
pub(crate) use job_model::jobs_agree_with_the_model;
pub(crate) use jobs::*;
pub(crate) use kill::{Durable, child, kills, kills_while_watching};
pub(crate) use letters::*;
pub(crate) use model::agrees_with_the_model;
pub(crate) use runs::*;
pub(crate) use watch::*;
pub(crate) use watch_guards::*;
pub(crate) use watch_model::watching_agrees_with_the_model;
pub(crate) use watch_sets::*;

/// A place where stores of one engine are.
pub trait Engine {
    /// The engine.
    type Store: crate::Engine;

    /// An empty place.
    fn new() -> Self;

    /// Opens the store there; after it was closed, the same one again.
    fn open(&self) -> Self::Store;
}

/// The tests of an engine, with an attribute for each if there is one.
macro_rules! suite {
    (@one ($($attribute:meta)?) $engine:ty, $test:ident) => {
        #[test]
        $(#[$attribute])?
        fn $test() {
            $crate::suite::$test::<$engine>();
        }
    };
    (@all $attribute:tt $engine:ty: $($test:ident)*) => {
        $($crate::suite::suite! { @one $attribute $engine, $test })*
    };
    ($(#[$attribute:meta])? $engine:ty) => {
        $crate::suite::suite! { @all ($($attribute)?) $engine:
            each_url_is_queued_once
            a_queue_is_read_from_any_entry
            what_is_completed_is_never_completed_again
            answers_are_read_as_they_were_written
            late_links_to_judged_urls_are_told
            a_demand_that_grows_while_a_url_is_asked_is_met_later
            what_is_local_is_judged_at_once
            the_next_run_knows_the_past
            pages_bring_links
            hosts_keep_what_was_learned
            events_have_cursors
            records_stop_and_go_on
            long_and_odd_texts_are_kept
            agrees_with_the_model
            jobs_are_handed_out_in_their_order
            a_job_with_a_known_key_is_stored_once
            the_last_attempt_ends_as_a_dead_letter
            dead_letters_are_kept_once
            dead_letters_are_found_by_what_they_are
            a_replay_is_done_once
            a_dead_letter_has_the_last_job_of_its_key
            old_dead_letters_are_dropped_but_those_of_urls
            the_last_exchange_is_cut
            stores_have_different_ids
            a_schedule_fires_once_for_ever
            schedules_keep_what_changed
            a_group_is_stored_or_not
            jobs_agree_with_the_model
            new_urls_are_due_at_once
            a_judgement_that_is_replayed_changes_nothing
            judgements_about_withdrawn_urls_are_stale
            a_source_that_lost_most_of_it_is_not_believed
            what_is_gone_is_said_when_it_is_submitted_again
            urls_at_private_addresses_are_counted_and_made_due
            what_a_clock_that_was_ahead_left_is_due_now
            what_is_written_late_is_due_nevertheless
            a_clock_that_jumps_hides_nothing
            holds_survive
            what_returns_after_a_hold_is_not_held
            siblings_are_alive
            times_of_guards_are_kept
            cycles_and_notices_are_kept
            urls_are_exported_by_their_numbers
            what_was_last_is_read_first
            what_is_in_no_set_for_long_is_forgotten
            what_a_check_has_learned_is_known_to_watch
            watching_agrees_with_the_model
            an_interrupted_run_goes_on
            an_interrupted_run_keeps_the_links_of_pages
            another_identity_is_another_run
            jobs_of_a_process_that_ended_are_started_again
            a_job_that_ends_its_process_is_poison
            kills
            kills_while_watching
        }
    };
}
pub(crate) use suite;

/// A time: some seconds after a fixed one.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_760_000_000 + seconds).expect("in range")
}

fn link_to(url: &str, line: u32) -> Link {
    wanted_link(
        url,
        line,
        Demand {
            given: true,
            ..Demand::default()
        },
    )
}

fn wanted_link(url: &str, line: u32, demand: Demand) -> Link {
    Link {
        spelling: url.into(),
        target: Target::Ask(Url::parse(url).expect("a URL"), demand),
        reference: place("urls.txt", line),
        is_in_page: false,
    }
}

fn local_link(spelling: &str, line: u32, cause: Cause) -> Link {
    Link {
        target: Target::Local(Verdict::Failed(cause), Some("no such file".to_owned())),
        ..spelled(link_to("http://a/", line), spelling)
    }
}

fn spelled(link: Link, spelling: &str) -> Link {
    Link {
        spelling: spelling.into(),
        ..link
    }
}

fn in_page(link: Link, page: &str) -> Link {
    let reference = Reference {
        source: page.into(),
        ..link.reference
    };
    Link {
        reference,
        is_in_page: true,
        ..link
    }
}

fn place(source: &str, line: u32) -> Reference {
    Reference {
        source: source.into(),
        line: Some(line),
        column: Some(1),
        written: None,
        text: String::new(),
    }
}

fn status(number: u16) -> Answer {
    let verdict = match number {
        404 => Verdict::Failed(Cause::Status404),
        410 => Verdict::Failed(Cause::Status410),
        500..=599 => Verdict::Failed(Cause::Status5xx(number)),
        _ => Verdict::Ok,
    };
    Answer {
        status: Some(number),
        ..Answer::of(verdict)
    }
}

/// Runs a test of random changes, with fewer than `most` of them in each case.
fn for_random_steps<S: Strategy>(step: S, most: usize, test: impl Fn(Vec<S::Value>)) {
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = proptest::collection::vec(step, 1..most);
    let agreed = runner.run(&steps, |steps| {
        test(steps);
        Ok(())
    });
    if let Err(error) = agreed {
        panic!("{error}");
    }
}

/// All records that the selection has: spelling, status, lines of the places.
fn records(store: &mut impl Store, selection: Selection) -> Vec<(String, Option<u16>, Vec<u32>)> {
    let mut all = Vec::new();
    let visit = &mut |record: Record| {
        all.push(summary(record));
        ControlFlow::Continue(())
    };
    store
        .records(LinkId::START, selection, visit)
        .expect("readable");
    all
}

fn summary(record: Record) -> (String, Option<u16>, Vec<u32>) {
    let lines = record
        .references
        .iter()
        .filter_map(|reference| reference.line);
    let status = record.answer.and_then(|answer| answer.status);
    (record.spelling, status, lines.collect())
}

fn events(store: &mut impl Store, after: Cursor) -> Vec<Event> {
    let mut all = Vec::new();
    let visit = &mut |event| {
        all.push(event);
        ControlFlow::Continue(())
    };
    store.events(after, visit).expect("readable");
    all
}

fn waiting(store: &mut impl Store) -> Vec<Host> {
    let mut all = Vec::new();
    let visit = &mut |host| {
        all.push(host);
        ControlFlow::Continue(())
    };
    store.waiting_hosts(visit).expect("readable");
    all
}

/// All entries of all hosts that wait.
fn queued(store: &mut impl Store) -> Vec<Queued> {
    let hosts = waiting(store);
    let take = |host: &Host| store.take(host.id, EntryId::START, 1000).expect("readable");
    hosts.iter().flat_map(take).collect()
}

fn queued_urls(store: &mut impl Store) -> Vec<String> {
    let queued = queued(store).into_iter();
    queued.map(|queued| queued.url.into()).collect()
}

/// Answers all entries with this status.
fn answer_all(store: &mut impl Store, number: u16) {
    let completed = queued(store);
    let completed: Vec<Completed> = completed
        .iter()
        .map(|queued| Completed::new(queued, status(number)))
        .collect();
    store.complete(&completed).expect("written");
}

fn begun<E: Engine>() -> (E, E::Store) {
    let engine = E::new();
    let mut store = engine.open();
    store.begin_run("test", at(0)).expect("written");
    (engine, store)
}
