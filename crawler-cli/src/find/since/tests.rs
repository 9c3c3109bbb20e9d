//! Listings of several runs, one after the other.

use tempfile::TempDir;

use super::*;
use crate::find::listing::{Entry, EntryKind};
use crate::find::range::SizeRange;
use crate::find::visitor::PageFacts;

const DIRECTORY: &str = "http://h/pub/";

fn entry(name: &str, size: u64) -> Entry {
    let kind = match name.as_bytes().last() {
        Some(b'/') => EntryKind::Directory,
        Some(b'?') => EntryKind::Unknown,
        _ => EntryKind::File,
    };
    let segment = name.trim_end_matches(['/', '?']).to_owned();
    Entry {
        name: path::decode(&segment),
        segment,
        kind,
        size: (kind == EntryKind::File).then(|| SizeRange::exact(size)),
        modified: None,
    }
}

fn listing(names: &[(&str, u64)]) -> Listing {
    let entries = names.iter().map(|(name, size)| entry(name, *size));
    Listing::unchanged(Shape::Nginx, entries.collect(), Directories::Path, true)
}

/// A page of a listing, or a part of one.
struct Page {
    directory: String,
    entries: Vec<Entry>,
    end: Option<PageFacts>,
}

impl Page {
    /// The page with these facts.
    fn with(self, facts: impl FnOnce(PageFacts) -> PageFacts) -> Self {
        Self {
            end: self.end.map(facts),
            ..self
        }
    }
}

fn page(directory: &str, listing: &Listing) -> Page {
    Page {
        directory: directory.to_owned(),
        entries: listing.entries.clone(),
        end: Some(PageFacts {
            is_alone: true,
            etag: Some(b"\"v1\"".to_vec()),
            ..PageFacts::of(listing)
        }),
    }
}

/// A record, and what one run after the other sees.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn open(&self) -> Since {
        Since::open(&self.folder.path().join("since"), "a search").expect("a record")
    }

    /// Reads pages, and returns what is gone. Then the record is replaced.
    fn run(&self, pages: &[Page]) -> Vec<String> {
        let since = self.open();
        let gone = read(&since, pages);
        since.commit().expect("written");
        gone
    }
}

fn read(since: &Since, pages: &[Page]) -> Vec<String> {
    let mut gone = Vec::new();
    for page in pages {
        let part = ReadPage {
            directory: &page.directory,
            start: b"/pub/",
            depth: 0,
            entries: &page.entries,
            end: page.end.as_ref(),
        };
        since.read(&part, &mut |entry| {
            let found = entry.found(b"/pub/");
            gone.push(format!("{} {}", found.depth, found.url));
        });
    }
    gone
}

fn change(since: &Since, name: &str) -> Option<Change> {
    let url = format!("{DIRECTORY}{name}");
    since.change(&Found {
        url: &url,
        ..Found::FILE
    })
}

#[test]
fn entries_are_new_changed_the_same_or_gone() {
    let world = World::new();
    let first = listing(&[("a", 1), ("b", 1), ("c/", 0), ("d", 1)]);
    assert_eq!(world.run(&[page(DIRECTORY, &first)]), [""; 0]);
    let second = listing(&[("a", 1), ("b", 2), ("e", 1)]);
    let since = world.open();
    assert_eq!(
        read(&since, &[page(DIRECTORY, &second)]),
        ["1 http://h/pub/c/", "1 http://h/pub/d"]
    );
    for (name, expected) in [
        ("a", None),
        ("b", Some(Change::Changed)),
        ("e", Some(Change::New)),
    ] {
        // The same, however often it is asked.
        assert_eq!(change(&since, name), expected, "{name}");
        assert_eq!(change(&since, name), expected, "{name}");
    }
    // Without a commit, nothing has happened.
    drop(since);
    assert_eq!(world.run(&[page(DIRECTORY, &second)]).len(), 2);
    assert_eq!(world.run(&[page(DIRECTORY, &second)]), [""; 0]);
}

#[test]
fn what_was_below_a_directory_that_is_gone_is_gone() {
    let world = World::new();
    let (top, below) = (
        listing(&[("a/", 0), ("ab/", 0)]),
        listing(&[("x", 1), ("y/", 0)]),
    );
    world.run(&[
        page(DIRECTORY, &top),
        page("http://h/pub/a/", &below),
        page("http://h/pub/a/y/", &below),
        page("http://h/pub/ab/", &below),
    ]);
    let rest = listing(&[("ab/", 0)]);
    assert_eq!(
        world.run(&[page(DIRECTORY, &rest)]),
        [
            "2 http://h/pub/a/x",
            "2 http://h/pub/a/y/",
            "3 http://h/pub/a/y/x",
            "3 http://h/pub/a/y/y/",
            "1 http://h/pub/a/",
        ]
    );
    // All of it is forgotten.
    world.run(&[page(DIRECTORY, &top)]);
    let since = world.open();
    assert!(since.stored("http://h/pub/a/").is_none());
    assert!(since.stored("http://h/pub/ab/").is_some());
}

/// Entries move between the pages of a listing, and a page may be missing.
#[test]
fn only_the_last_page_shows_what_is_gone() {
    let world = World::new();
    let next = |names: &[(&str, u64)]| {
        let mut listing = listing(names);
        listing.next = Some("/pub/?page=2".to_owned());
        listing
    };
    let (one, two) = (next(&[("a", 1), ("b", 1)]), listing(&[("c", 1), ("d", 1)]));
    let further = |listing: &Listing| {
        page(DIRECTORY, listing).with(|facts| PageFacts {
            is_alone: false,
            ..facts
        })
    };
    world.run(&[page(DIRECTORY, &one), further(&two)]);
    let (one, two) = (next(&[("b", 1), ("c", 1)]), listing(&[("d", 1)]));
    // The second page could not be read.
    assert_eq!(world.run(&[page(DIRECTORY, &one)]), [""; 0]);
    assert_eq!(
        world.run(&[page(DIRECTORY, &one), further(&two)]),
        ["1 http://h/pub/a"]
    );
    // A listing of several pages is asked for again.
    assert_eq!(world.open().validators(DIRECTORY), Validators::default());
}

#[test]
fn a_listing_that_leaves_entries_out_shows_nothing_gone() {
    let world = World::new();
    let all = listing(&[("a", 1), ("b", 1)]);
    world.run(&[page(DIRECTORY, &all)]);
    let part = page(DIRECTORY, &listing(&[("a", 1)])).with(|facts| PageFacts {
        leaves_out: true,
        ..facts
    });
    assert_eq!(world.run(&[part]), [""; 0]);
    assert_eq!(world.open().validators(DIRECTORY), Validators::default());
}

/// The entries of a very large listing come in parts: the last one shows what is gone.
#[test]
fn a_listing_in_parts_shows_what_is_gone_at_its_end() {
    let world = World::new();
    let part = |names: &[(&str, u64)]| Page {
        end: None,
        ..page(DIRECTORY, &listing(names))
    };
    let last = |names: &[(&str, u64)]| {
        page(DIRECTORY, &listing(names)).with(|facts| PageFacts {
            is_alone: false,
            ..facts
        })
    };
    world.run(&[part(&[("a", 1), ("b", 1)]), last(&[("c", 1), ("d", 1)])]);
    assert_eq!(world.open().validators(DIRECTORY), Validators::default());
    // The rest did not come.
    assert_eq!(world.run(&[part(&[("b", 1)])]), [""; 0]);
    let since = world.open();
    let parts = [part(&[("b", 2), ("c", 1)]), last(&[("e", 1)])];
    assert_eq!(
        read(&since, &parts),
        ["1 http://h/pub/a", "1 http://h/pub/d"]
    );
    for (name, expected) in [
        ("b", Some(Change::Changed)),
        ("c", None),
        ("e", Some(Change::New)),
    ] {
        assert_eq!(change(&since, name), expected, "{name}");
    }
    // What was told, but not found, is found by the next run.
    since.lose(DIRECTORY);
    since.commit().expect("written");
    drop(since);
    let since = world.open();
    assert_eq!(read(&since, &parts), [""; 0]);
    for (name, expected) in [
        ("b", Some(Change::New)),
        ("c", None),
        ("e", Some(Change::New)),
    ] {
        assert_eq!(change(&since, name), expected, "{name}");
    }
}

/// More entries are gone than are in memory at a time.
#[test]
fn all_of_a_large_directory_can_be_gone() {
    let world = World::new();
    let names: Vec<String> = (0..3000).map(|number| format!("f{number:04}")).collect();
    let all: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let top = listing(&[("d/", 0)]);
    let below = "http://h/pub/d/";
    let pages = [page(DIRECTORY, &top), page(below, &listing(&all))];
    world.run(&pages);
    let expected: Vec<String> = names
        .iter()
        .map(|name| format!("1 {below}{name}"))
        .collect();
    assert_eq!(world.run(&[page(below, &listing(&[]))]), expected);
    world.run(&pages);
    let gone = world.run(&[page(DIRECTORY, &listing(&[]))]);
    assert_eq!(gone.len(), 3001);
}

#[test]
fn an_unchanged_listing_comes_from_the_record() {
    let world = World::new();
    let all = listing(&[("a%20b", 1), ("c/", 0), ("d?", 0)]);
    world.run(&[page(DIRECTORY, &all)]);
    let since = world.open();
    let validators = since.validators(DIRECTORY);
    assert_eq!(validators.etag.as_deref(), Some("\"v1\""));
    let stored = since.stored(DIRECTORY).expect("stored");
    assert_eq!(stored.entries, all.entries);
    let unchanged = page(DIRECTORY, &stored).with(|facts| PageFacts {
        unchanged: true,
        ..facts
    });
    assert_eq!(read(&since, &[unchanged]), [""; 0]);
    assert_eq!(change(&since, "a%20b"), None);
    // What the crawl could not deal with is new for the next run, which reads the listing.
    since.forget("http://h/pub/a%20b");
    since.commit().expect("written");
    drop(since);
    let since = world.open();
    assert_eq!(since.validators(DIRECTORY), Validators::default());
    assert!(since.stored(DIRECTORY).is_none());
    read(&since, &[page(DIRECTORY, &all)]);
    assert_eq!(change(&since, "a%20b"), Some(Change::New));
}

#[test]
fn a_server_that_begins_to_mark_directories_loses_nothing() {
    let world = World::new();
    let open = listing(&[("a?", 0), ("b?", 0)]);
    let marked = listing(&[("a/", 0), ("b", 1)]);
    world.run(&[page(DIRECTORY, &open)]);
    assert_eq!(world.run(&[page(DIRECTORY, &marked)]), [""; 0]);
    assert_eq!(world.run(&[page(DIRECTORY, &open)]), [""; 0]);
    // But a file in place of a directory is another entry.
    let file = listing(&[("a", 1), ("b", 1)]);
    world.run(&[page(DIRECTORY, &marked)]);
    assert_eq!(world.run(&[page(DIRECTORY, &file)]), ["1 http://h/pub/a/"]);
}

#[test]
fn starts_are_new_once() {
    let world = World::new();
    for expected in [Some(Change::New), None] {
        let since = world.open();
        for _ in 0..2 {
            assert_eq!(change(&since, "start.iso"), expected);
        }
        since.commit().expect("written");
    }
}

#[test]
fn the_record_of_another_search_or_of_a_running_one_is_refused() {
    let world = World::new();
    let path = world.folder.path().join("since");
    let since = world.open();
    assert!(Since::open(&path, "a search").is_err());
    since.commit().expect("written");
    drop(since);
    let error = Since::open(&path, "another").expect_err("refused");
    assert!(
        error.to_string().contains("another search: a search"),
        "{error}"
    );
}
