//! `watch hold`: hosts that a guard holds.

use jiff::Timestamp;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::{Command, ControlError, HoldDeed, Reply};
use crate::watch::hands::{Shape, counted, shown_url};

/// `watch hold`.
pub(super) struct Hold;

impl Spec for Hold {
    const NAME: &'static str = "hold";
    const TITLE: &'static str = "watch hold";
    const ABOUT: &'static str = "list, release or confirm hosts that are held";
    const USAGE: &'static str = "list | release URL|HOST|SET | confirm URL|HOST|SET";
    const DESCRIPTION: &'static str = "\
A host is held when many of its URLs turn negative at once, as when a cache is purged: nothing ages, and only samples are asked.
release: the host was only disturbed. Every held URL is asked at once, and what is negative starts from the beginning.
confirm: the URLs are really gone. Every held URL is asked at once, and what is negative goes on where it was.
A URL means its host, and a set those of its hosts that are held.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[Rows::<Self>::JSON, ConfigRows::ALL, HelpRows::ALL],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[(
        "crawler-cli watch hold release cdn.example.com",
        "The host is fine again",
    )];
    const OPERANDS: &'static [&'static str] = &["list", "release", "confirm"];

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        match *operands {
            ["list"] => {
                let holds = values.reader()?.holds(Timestamp::now(), values.shape())?;
                match (holds.is_empty(), values.shape()) {
                    (true, Shape::Text) => print("no host is held\n"),
                    _ => print(&holds),
                }
            }
            ["release", host] => end(&values, host, HoldDeed::Release),
            ["confirm", host] => end(&values, host, HoldDeed::Confirm),
            _ => Err(usage(format!("neither of: {}", Self::USAGE))),
        }
    }
}

fn end(values: &Values, name: &str, deed: HoldDeed) -> Result<(), Failure> {
    let roots = values.named_roots(name)?;
    let mut hand = values.hand()?;
    let mut ended = 0;
    for root in &roots {
        let command = Command::Hold {
            host: root.clone(),
            deed,
        };
        match hand.send(&command) {
            Ok(Reply::Count { count, .. }) => {
                let done = match deed {
                    HoldDeed::Release => "released",
                    HoldDeed::Confirm => "confirmed",
                };
                let urls = counted(count, "URL", "URLs");
                print(&format!("{done} {}: {urls}\n", shown_url(root)))?;
                ended += 1;
            }
            Ok(_) => return Err(hand.foreign("not a count").into()),
            // A name may mean two hosts, of which one is held.
            Err(ControlError::Refused(refusal)) if refusal.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    match ended {
        0 => Err(Failure::Failed(format!("{name} is not held"))),
        _ => Ok(()),
    }
}
