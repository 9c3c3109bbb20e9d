//! The clients that transfers share when they run at the same time: one for each group of connection settings, as
//! [`Links`](super::link::Links) has for one transfer after the other.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use courser::{Client, Observer, Proxies, Shared, SharedConfig};

use super::exit::Failure;
use super::link;
use super::settings::Settings;
use super::show::Trace;

pub(super) struct Pool {
    open: Mutex<Vec<Open>>,
    trace: Trace,
}

struct Open {
    settings: Settings,
    /// Whether the client speaks TLS.
    secure: bool,
    client: Shared<Client>,
    proxies: Proxies,
}

impl Pool {
    /// No client is open yet.
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            open: Mutex::default(),
            trace,
        }
    }

    /// The client with these settings; opened if there is none.
    pub(super) fn client(
        &self,
        settings: &Settings,
        secure: bool,
    ) -> Result<(Shared<Client>, Proxies), Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |open: &&Open| open.settings == *settings && open.secure == secure;
        if let Some(open) = open.iter().find(fits) {
            return Ok((open.client.clone(), open.proxies.clone()));
        }
        let (trace, insecure) = (self.trace.clone(), settings.tls.insecure);
        let observer = Observer::new(move |event| trace.event(event, insecure));
        let (config, proxies) = link::config(settings, secure, None, observer)?;
        let name_servers = settings.name_servers.clone();
        let threads = SharedConfig {
            threads: NonZeroUsize::MIN,
            ..SharedConfig::default()
        };
        let make = move |_| link::client(config.clone(), name_servers.as_deref());
        let client = Shared::spawn(threads, make);
        let client = client.map_err(|error| Failure::from(&error))?;
        open.push(Open {
            settings: settings.clone(),
            secure,
            client: client.clone(),
            proxies: proxies.clone(),
        });
        Ok((client, proxies))
    }
}
