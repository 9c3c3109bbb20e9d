//! All checks against one server, compared with what is expected.

use std::any::Any;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use courser::{HostClient, HostConfig, Response, TlsConfig, TlsVersion};
use tests::clients::config;
use tests::process::Process;
use tests::script::PATIENCE;

use crate::features::Feature;
use crate::programs::Program;
use crate::quirk::Quirk;
use crate::running::{self, Flavor};
use crate::site::Site;

/// What a server does with a feature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// As the RFCs say.
    Works,
    /// The server does not have the feature, or is not set up for it.
    Lacks,
    /// The server does something else, and the client copes.
    Copes(Quirk),
}

/// Runs all checks against one server.
///
/// # Errors
/// The checks that failed, or that saw something else than is expected.
pub(crate) fn run(program: &'static Program, site: &Site) -> Result<(), String> {
    let bench = Bench::new(program, site);
    let mut failures = Vec::new();
    for feature in Feature::ALL {
        let expected = program.expected(*feature);
        match catch_unwind(AssertUnwindSafe(|| feature.check(&bench))) {
            Ok(seen) if seen == expected => {}
            Ok(seen) => failures.push(format!("{feature:?}: {seen:?} instead of {expected:?}")),
            Err(panic) => failures.push(format!("{feature:?}: {}", message(&*panic))),
        }
    }
    if !failures.is_empty() {
        let log = bench.log();
        return Err(format!("{}\n{log}", failures.join("\n")));
    }
    Ok(())
}

/// What a check that failed says.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied())
        .unwrap_or("no message")
}

/// A server under test: its flavors, each started when a check needs it, and clients for them.
pub(crate) struct Bench<'a> {
    program: &'static Program,
    site: &'a Site,
    /// The application that a proxy forwards to.
    backend: Option<Process>,
    plain: OnceCell<Option<Process>>,
    ending: OnceCell<Option<Process>>,
    tls: OnceCell<Option<Process>>,
}

impl<'a> Bench<'a> {
    fn new(program: &'static Program, site: &'a Site) -> Self {
        let backend = program
            .forwards
            .then(|| running::start(&crate::programs::HTTP_SERVER, Flavor::Plain, site, None));
        Self {
            program,
            site,
            backend: backend.flatten(),
            plain: OnceCell::new(),
            ending: OnceCell::new(),
            tls: OnceCell::new(),
        }
    }

    /// The server that all checks share; `None` if it has no such flavor.
    pub(crate) fn server(&self, flavor: Flavor) -> Option<&Process> {
        let cell = match flavor {
            Flavor::Plain => &self.plain,
            Flavor::Ending => &self.ending,
            Flavor::Tls => &self.tls,
        };
        let backend = self.backend.as_ref().map(Process::address);
        cell.get_or_init(|| running::start(self.program, flavor, self.site, backend))
            .as_ref()
    }

    /// A client of the plain server, if there is one.
    pub(crate) fn client(&self) -> Option<HostClient> {
        self.server(Flavor::Plain).map(running::client)
    }

    /// The URL of the server with TLS.
    pub(crate) fn secure_url(&self) -> Option<String> {
        let server = self.server(Flavor::Tls)?;
        Some(format!("https://{}", server.address()))
    }

    /// The options of clients that trust the site, with this version of TLS.
    pub(crate) fn secure(&self, version: TlsVersion) -> HostConfig {
        HostConfig {
            tls: TlsConfig {
                min_version: version,
                max_version: version,
                ..self.site.authority.trusted()
            },
            ..patient()
        }
    }

    /// The response is the whole page at `/hello`.
    pub(crate) fn assert_hello(&self, response: &Response) {
        let page = self.program.hello;
        let right = match page {
            b"" => !response.body().is_empty(),
            _ => response.body() == page,
        };
        assert!(right && response.status() == 200, "{response:?}");
    }

    fn log(&self) -> String {
        let servers = [&self.plain, &self.ending, &self.tls];
        let started = servers.into_iter().filter_map(OnceCell::get).flatten();
        started
            .chain(&self.backend)
            .map(Process::log)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The options of clients that leave the end of idle connections to the server.
pub(crate) fn patient() -> HostConfig {
    HostConfig {
        idle_timeout: PATIENCE * 2,
        ..config()
    }
}
