//! A server for tests: its store, a core that answers, and requests to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::Rate;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

use super::*;
use crate::check::host::HeadUse;
use crate::store::sqlite::Sqlite;
use crate::store::{Writer, WriterSettings};
use crate::watch::config::{Current, Loaded};
use crate::watch::control::{
    Command, CoreMessage, CoreStatus, HostLimits, HostLive, HostWaits, Operator, Reply, Schedules,
    TokenDeed, core_channel,
};
use crate::watch::hands::Reader;
use crate::watch::metrics::Sources;
use crate::watch::tokens::{NewToken, hash_of};
use crate::watch::vitals::Vitals;

/// A server that runs, with all that it serves.
pub(in crate::watch) struct Served {
    pub(in crate::watch) admin: Option<Admin>,
    pub(in crate::watch) store: Writer,
    pub(in crate::watch) operator: Operator<Writer>,
    pub(in crate::watch) vitals: Arc<Vitals>,
    /// How often the core was asked how it is.
    pub(in crate::watch) asked: Arc<AtomicUsize>,
    core: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    _folder: TempDir,
}

impl Served {
    pub(in crate::watch) fn start() -> Self {
        Self::with(AdminLimits::default(), "")
    }

    /// With these limits, and this configuration.
    pub(in crate::watch) fn with(limits: AdminLimits, config: &str) -> Self {
        let (site, mut served) = Self::site(config);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        served.admin = Some(Admin::start(any, limits, site).expect("started"));
        served
    }

    /// A server that tells each statement with which its pages read the store.
    pub(in crate::watch) fn traced(note: fn(&str)) -> Self {
        let (site, mut served) = Self::built("", Some(note));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        served.admin = Some(Admin::start(any, AdminLimits::default(), site).expect("started"));
        served
    }

    /// All but the server.
    pub(in crate::watch) fn site(config: &str) -> (Site, Self) {
        Self::built(config, None)
    }

    fn built(config: &str, note: Option<fn(&str)>) -> (Site, Self) {
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
            store: store.clone(),
            core: handle,
            vitals: Arc::clone(&vitals),
            schedules: Arc::default(),
            tokens: Arc::default(),
            hooks: Arc::default(),
            is_public: false,
        };
        let loaded = Loaded::parse(config, Path::new("watch.toml"), &[]).expect("valid");
        let mut reader = Reader::open(&file).expect("opened");
        if let Some(note) = note {
            reader.store().trace(note);
        }
        let site = Site::new(
            operator.clone(),
            sources,
            reader,
            Arc::new(Current::new(loaded)),
        );
        let site = site.expect("random numbers");
        let (stop, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&asked));
        let core = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match inbox.take() {
                    Some(CoreMessage::Status { answer, .. }) => {
                        counted.fetch_add(1, Ordering::Relaxed);
                        drop(answer.send(CoreStatus::default()));
                    }
                    Some(CoreMessage::Hosts { roots, answer }) => {
                        drop(answer.send(roots.into_iter().map(host).collect()));
                    }
                    Some(_) => {}
                    None => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let served = Self {
            admin: None,
            store,
            operator,
            vitals,
            asked,
            core: Some(core),
            stop,
            _folder: folder,
        };
        (site, served)
    }

    /// Makes a token with this name.
    pub(in crate::watch) fn token(
        &self,
        name: &str,
        may_write: bool,
        expires_at: Option<Timestamp>,
    ) -> String {
        let token = NewToken::make().expect("random numbers");
        let deed = TokenDeed::Add {
            id: token.id,
            name: name.to_owned(),
            hash: BASE64_STANDARD.encode(hash_of(&token.text)),
            may_write,
            expires_at,
        };
        let reply = self.operator.perform(Command::Token { deed }, "me");
        assert_eq!(reply, Reply::Done);
        token.text
    }

    /// Lets commands name the schedules of a configuration.
    pub(in crate::watch) fn knows_schedules(&self, config: &str) {
        let loaded = Loaded::parse(config, Path::new("watch.toml"), &[]).expect("valid");
        let known = Schedules::from(&*loaded.config.schedules);
        *self.operator.schedules.write().expect("not poisoned") = known;
    }

    /// The status of the answer to a request without the last field and the empty line.
    pub(in crate::watch) fn status(&self, request: &str) -> u16 {
        let answer = self.exchange(format!("{request}Connection: close\r\n\r\n"));
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{answer}"))
    }

    /// Sends a form, with these further fields of the head.
    pub(in crate::watch) fn post(&self, path: &str, fields: &str, form: &str) -> String {
        self.exchange(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n{fields}\r\n{form}",
            form.len()
        ))
    }

    /// Sends JSON to a route of the API, with these further fields of the head: the status, the head and the value of the
    /// answer.
    pub(in crate::watch) fn api(
        &self,
        path: &str,
        fields: &str,
        body: &str,
    ) -> (u16, String, Value) {
        let answer = self.exchange(format!(
            "POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\n{fields}\r\n{body}",
            body.len()
        ));
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let value = serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {answer}"));
        (
            head[9..12].parse().expect("a status"),
            head.to_owned(),
            value,
        )
    }

    pub(in crate::watch) fn connect(&self) -> TcpStream {
        let address = self.admin.as_ref().expect("started").address();
        let client = TcpStream::connect(address).expect("connected");
        // Nothing here takes this long.
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("set");
        client
    }

    /// What the server answers until it closes the connection.
    pub(in crate::watch) fn exchange(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.connect();
        client.write_all(request.as_ref()).expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        answer
    }

    pub(in crate::watch) fn get(&self, path: &str) -> String {
        self.exchange(format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"
        ))
    }
}

/// A host that waits for nothing.
fn host(root: Url) -> HostLive {
    HostLive {
        waits: HostWaits {
            root: root.into(),
            under_way: 0,
            waiting: 0,
            waits: Vec::new(),
        },
        limits: HostLimits {
            connections: Some(2),
            rate: Some(Rate::every(Duration::from_secs(1))),
            delay: Duration::ZERO,
            robots_delay: Some(Duration::from_secs(3)),
            timeout: Duration::from_secs(20),
            head: HeadUse::Auto,
        },
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
