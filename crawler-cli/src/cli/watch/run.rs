//! `crawler-cli watch run`: the service.

use std::io;

use super::verb::{ConfigFile, load};
use crate::cli::find::read_for_job;
use crate::cli::signals::{cannot_watch, hang_up_flag, interrupt_flag};
use crate::cli::usage::Failure;
use plain::terminal;
use watch::daemon::{self, Signals};

/// Run the service that keeps checking
///
/// Checks the URLs of the sets in the configuration, each at its own times, keeps all results in the store, and runs
/// jobs by their schedules, until a signal ends it.
///
/// The first line on standard output says where metrics and health are served: /metrics, /healthz, /readyz and /version.
/// Logs go to standard error.
///
/// The service tells systemd when it is ready, and feeds its watchdog (Type=notify-reload, WatchdogSec).
#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub(super) struct Run {
    #[command(flatten)]
    config: ConfigFile,
}

impl Run {
    pub(super) fn run(self) -> Result<(), Failure> {
        let path = self.config.path()?;
        let mut read = || load(&path);
        let loaded = read().map_err(Failure::Wrong)?;
        let signals = signals().map_err(cannot_watch)?;
        match daemon::run(loaded, &mut read, read_for_job, &signals, &mut io::stdout()) {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_configuration() => {
                let text = failure.to_string();
                let text = terminal::neutralise(&text);
                Err(Failure::Wrong(format!("crawler-cli watch run: {text}")))
            }
            Err(failure) => Err(Failure::Failed(failure.to_string())),
        }
    }
}

fn signals() -> io::Result<Signals> {
    Ok(Signals {
        end: interrupt_flag()?,
        reload: hang_up_flag()?,
    })
}

const HELP: &str = "\
Signals:
  SIGHUP           Read the configuration and the sources of the sets again. A configuration that is
                   wrong, or that needs a restart, changes nothing.
  SIGTERM, SIGINT  Ask nothing new, finish what is under way within limits.drain_timeout, and end. A
                   second one ends the process at once; what was under way is asked again later.

Exit status:
  0    The service was ended by a signal, and everything is stored.
  1    The service failed, or could not store everything at its end.
  2    The configuration or the command line is wrong, or the store cannot be used.
  130  A second signal ended the process.

Examples:
  crawler-cli watch config example > watch.toml    begin with a file that has all keys
  crawler-cli watch run --config watch.toml        run the service";
