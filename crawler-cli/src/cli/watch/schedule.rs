//! `watch schedule`: schedules of the configuration.

use jiff::Timestamp;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::{Command, ScheduleDeed};
use crate::watch::hands::Shape;

/// `watch schedule`.
pub(super) struct Schedule;

impl Spec for Schedule {
    const NAME: &'static str = "schedule";
    const TITLE: &'static str = "watch schedule";
    const ABOUT: &'static str = "list, run, pause or resume schedules";
    const USAGE: &'static str = "list | run NAME | pause NAME | resume NAME";
    const DESCRIPTION: &'static str = "\
list: the schedules of the configuration: when each fires next and has fired last, and how many firings were missed, because no service ran, or skipped, because the run before had not ended.
run: fire now, besides its times. Without a service, it fires when one starts. pause: do not fire at its times. resume: fire again; what was missed meanwhile is subject to catch_up.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[Rows::<Self>::JSON, ConfigRows::ALL, HelpRows::ALL],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("crawler-cli watch schedule run nightly", "Do not wait")];
    const OPERANDS: &'static [&'static str] = &["list", "run", "pause", "resume"];

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        let (deed, name, done) = match *operands {
            ["list"] => {
                let config = values.load()?.config;
                let names = config.schedules.iter().map(|one| one.name.clone());
                let names: Vec<String> = names.collect();
                let rows = values
                    .reader()?
                    .schedules(&names, Timestamp::now(), values.shape())?;
                return match (names.is_empty(), values.shape()) {
                    (true, Shape::Text) => print("the configuration has no schedules\n"),
                    _ => print(&rows),
                };
            }
            ["run", name] => (ScheduleDeed::Run, name, "runs"),
            ["pause", name] => (ScheduleDeed::Pause, name, "is paused"),
            ["resume", name] => (ScheduleDeed::Resume, name, "is resumed"),
            _ => return Err(usage(format!("neither of: {}", Self::USAGE))),
        };
        let mut hand = values.hand()?;
        hand.send(&Command::Schedule {
            name: name.to_owned(),
            deed,
        })?;
        let is_run = deed == ScheduleDeed::Run;
        let when = match (is_run, hand.is_service()) {
            (true, false) => " when the service starts",
            (true, true) => " within some seconds",
            (false, _) => "",
        };
        print(&format!("{name} {done}{when}\n"))
    }
}
