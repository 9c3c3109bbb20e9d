//! A server for tests: its store, a core that answers, and requests to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::store::sqlite::Sqlite;
use crate::store::{Writer, WriterSettings};
use crate::watch::config::{Current, Loaded};
use crate::watch::control::{CoreMessage, CoreStatus, Operator, core_channel};
use crate::watch::hands::Reader;
use crate::watch::metrics::Sources;
use crate::watch::vitals::Vitals;

/// A server that runs, with all that it serves.
pub(super) struct Served {
    admin: Option<Admin>,
    pub(super) vitals: Arc<Vitals>,
    core: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    _folder: TempDir,
}

impl Served {
    pub(super) fn start() -> Self {
        Self::with(AdminLimits::default(), "")
    }

    /// With these limits, and this configuration.
    pub(super) fn with(limits: AdminLimits, config: &str) -> Self {
        let (site, mut served) = Self::site(config);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        served.admin = Some(Admin::start(any, limits, site).expect("started"));
        served
    }

    /// All but the server.
    fn site(config: &str) -> (Site, Self) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("watch.db");
        let engine = Sqlite::open(&file).expect("opened");
        let rejected = engine.rejected_figures();
        let store = Writer::start(engine, WriterSettings::default()).expect("started");
        let vitals = Arc::new(Vitals::new(Instant::now()));
        let sources = Sources {
            checks: Arc::default(),
            store: store.figures(),
            rejected,
            vitals: Arc::clone(&vitals),
            hooks: Arc::default(),
        };
        let (handle, inbox) = core_channel();
        let operator = Operator {
            store,
            core: handle,
            vitals: Arc::clone(&vitals),
            schedules: Arc::default(),
            tokens: Arc::default(),
            hooks: Arc::default(),
            is_public: false,
        };
        let loaded = Loaded::parse(config, Path::new("watch.toml")).expect("valid");
        let reader = Reader::open(&file).expect("opened");
        let site = Site::new(operator, sources, reader, Arc::new(Current::new(loaded)));
        let site = site.expect("random numbers");
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let core = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match inbox.take() {
                    Some(CoreMessage::Status { answer, .. }) => {
                        drop(answer.send(CoreStatus::default()));
                    }
                    Some(_) => {}
                    None => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let served = Self {
            admin: None,
            vitals,
            core: Some(core),
            stop,
            _folder: folder,
        };
        (site, served)
    }

    /// The status of the answer to a request without the last field and the empty line.
    pub(super) fn status(&self, request: &str) -> u16 {
        let answer = self.exchange(format!("{request}Connection: close\r\n\r\n"));
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{answer}"))
    }

    pub(super) fn connect(&self) -> TcpStream {
        let address = self.admin.as_ref().expect("started").address();
        let client = TcpStream::connect(address).expect("connected");
        // Nothing here takes this long.
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("set");
        client
    }

    /// What the server answers until it closes the connection.
    pub(super) fn exchange(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.connect();
        client.write_all(request.as_ref()).expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        answer
    }

    pub(super) fn get(&self, path: &str) -> String {
        self.exchange(format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"
        ))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.admin = None;
        self.stop.store(true, Ordering::Relaxed);
        if let Some(core) = self.core.take() {
            core.join().expect("no panic");
        }
    }
}
