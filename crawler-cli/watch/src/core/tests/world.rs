//! A simulated network with servers, a virtual clock and a store, and a watcher that can be killed and started again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::Answer;
use courser::error::DnsError;
use courser::net::sim::{Link, Peer, ScriptedAnswer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use jiff::Timestamp;

use crate::control::{CoreHandle, CoreMessage, core_channel};
use crate::core::{Limits, Reason, Settings, Watcher};
use crate::figures::Figures;
use crawl::clock::NetClock;
use store::sqlite::Sqlite;
use store::{
    HostHold, Inline, NewUrl, Notice, NoticeId, Origin, StoreHandle as _, UrlDetail, Which,
};
use verdict::life::State;

pub(super) type Sim = Watcher<SimNet, Inline<Sqlite>, NetClock<SimNet>>;

/// What a server does with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reaction {
    Status(u16),
    /// 200 after this time.
    Slow(Duration),
    /// 429 with a `Retry-After` of so many seconds.
    Busy(u64),
    /// No answer: the connection is reset.
    Reset,
}

/// A request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Ask {
    pub(super) host: usize,
    pub(super) path: String,
    pub(super) head: String,
    pub(super) at: Instant,
}

type Script = Box<dyn FnMut(&Ask) -> Reaction>;

/// What all servers share.
pub(super) struct Site {
    pub(super) script: Script,
    /// Without requests for robots.txt.
    pub(super) journal: Vec<Ask>,
    /// The number of hosts: further names do not exist.
    pub(super) names: usize,
}

pub(super) struct World {
    pub(super) net: SimNet,
    pub(super) clock: NetClock<SimNet>,
    pub(super) store: Inline<Sqlite>,
    pub(super) site: Rc<RefCell<Site>>,
    pub(super) settings: Settings,
    pub(super) watcher: Option<Sim>,
    pub(super) core: Option<CoreHandle>,
    starts: u64,
}

impl World {
    /// A world with this many hosts, `h0.test` and so on, whose servers answer by the script.
    pub(super) fn new(hosts: usize, script: impl FnMut(&Ask) -> Reaction + 'static) -> Self {
        let net = SimNet::new(7);
        net.set_tracing(false);
        let site = Rc::new(RefCell::new(Site {
            script: Box::new(script),
            journal: Vec::new(),
            names: hosts,
        }));
        for host in 0..hosts {
            let address = Address::Tcp(format!("{}:80", ip(host)).parse().unwrap());
            net.listen(
                address,
                Link::default(),
                Server {
                    site: Rc::clone(&site),
                    host,
                    unread: HashMap::new(),
                },
            );
        }
        let clock = NetClock::new(net.clone(), "2026-01-01T00:00:00Z".parse().unwrap());
        let settings = Settings {
            limits: Limits {
                allow_private: true,
                per_host_rate: Limits::rate(10.0),
                ..Limits::default()
            },
            ..Settings::default()
        };
        Self {
            net,
            clock,
            store: Inline::new(Sqlite::temporary().unwrap()),
            site,
            settings,
            watcher: None,
            core: None,
            starts: 0,
        }
    }

    /// Submits `/0`, `/1` and so on of a host.
    pub(super) fn submit(&mut self, host: usize, count: usize) {
        let urls: Vec<NewUrl> = (0..count)
            .map(|path| NewUrl::parse(&url(host, path)).unwrap())
            .collect();
        let now = self.now();
        self.store
            .call(move |engine| engine.submit("set", Origin::Hand, &urls, now))
            .unwrap();
        if let Some(watcher) = &mut self.watcher {
            watcher.look_again();
        }
    }

    pub(super) fn tell(&self, message: CoreMessage) {
        assert!(self.core.as_ref().unwrap().tell(message));
    }

    /// Makes URLs due now.
    pub(super) fn recheck(&mut self, which: Which) {
        let now = self.now();
        self.store
            .call(move |engine| engine.make_due(&which, now, None, 10_000))
            .unwrap();
        if let Some(watcher) = &mut self.watcher {
            watcher.look_again();
        }
    }

    /// Why the host is not asked.
    pub(super) fn why(&mut self, host: usize) -> Vec<Reason> {
        let root = format!("http://h{host}.test/").parse().unwrap();
        let waits = self.watcher.as_mut().unwrap().why(&root);
        waits.into_iter().map(|waiting| waiting.reason).collect()
    }

    pub(super) fn figures(&self) -> &Figures {
        self.watcher.as_ref().unwrap().figures()
    }

    pub(super) fn holds(&self) -> Vec<HostHold> {
        self.store.call(|engine| engine.holds()).unwrap()
    }

    /// What operators were told, of this kind.
    pub(super) fn notices(&self, kind: &str) -> Vec<String> {
        let all = self
            .store
            .read(|engine| engine.notices(NoticeId::START, 1_000));
        let told = all.unwrap().into_iter().map(|(_, notice)| notice);
        let told = told.filter(|notice: &Notice| notice.kind == kind);
        told.map(|notice| notice.text).collect()
    }

    pub(super) fn now(&self) -> Timestamp {
        use crawl::clock::Clock as _;
        self.clock.now()
    }

    pub(super) fn start(&mut self) {
        self.starts += 1;
        let site = Rc::clone(&self.site);
        let resolver = self.net.resolver(move |_, name| {
            let site = site.borrow();
            let host = name.trim_end_matches('.').strip_prefix('h');
            let host = host.and_then(|name| name.strip_suffix(".test")?.parse::<usize>().ok());
            let answer = match host {
                Some(host) if host < site.names => {
                    Answer::found([ip(host).parse().unwrap()], Duration::from_secs(60))
                }
                _ => Answer::failed(DnsError::NotFound),
            };
            ScriptedAnswer::After(Duration::from_millis(5), answer)
        });
        let client = self.settings.client_on(self.net.clone(), resolver).unwrap();
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let watcher = Watcher::new(client, self.settings.clone(), store, clock, self.starts);
        let (handle, inbox) = core_channel();
        self.core = Some(handle);
        self.watcher = Some(watcher.unwrap().with_inbox(inbox));
    }

    /// As kill -9 does.
    pub(super) fn kill(&mut self) {
        self.watcher = None;
    }

    pub(super) fn step(&mut self, longest: Duration) {
        if self.watcher.is_none() {
            self.start();
        }
        self.watcher.as_mut().unwrap().step(longest).unwrap();
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.net.now() + time;
        while self.net.now() < end {
            let left = end - self.net.now();
            self.step(left);
        }
    }

    pub(super) fn detail(&self, host: usize, path: usize) -> UrlDetail {
        let url = url(host, path);
        self.store
            .read(move |engine| engine.show(&url))
            .unwrap()
            .unwrap()
    }

    pub(super) fn count(&self, state: State) -> u64 {
        let counts = self.store.read(|engine| engine.watch_counts()).unwrap();
        counts.states.get(&state).copied().unwrap_or_default()
    }

    pub(super) fn journal(&self) -> Vec<Ask> {
        self.site.borrow().journal.clone()
    }

    /// The paths that were asked of a host since then, without robots.txt and the root.
    pub(super) fn asked_since(&self, host: usize, since: Instant) -> Vec<String> {
        let journal = self.journal().into_iter();
        let asked = journal.filter(|ask| ask.host == host && ask.at >= since && ask.path != "/");
        asked.map(|ask| ask.path).collect()
    }

    /// Requests for a path.
    pub(super) fn asked(&self, host: usize, path: &str) -> Vec<Ask> {
        let journal = self.journal().into_iter();
        journal
            .filter(|ask| ask.host == host && ask.path == path)
            .collect()
    }
}

pub(super) fn url(host: usize, path: usize) -> String {
    format!("http://h{host}.test/{path}")
}

fn ip(host: usize) -> String {
    format!("10.0.{}.{}", host / 250, host % 250 + 1)
}

struct Server {
    site: Rc<RefCell<Site>>,
    host: usize,
    /// By connection.
    unread: HashMap<u64, Vec<u8>>,
}

impl SimServer for Server {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let unread = self.unread.entry(peer.connection()).or_default();
        unread.extend_from_slice(data);
        while let Some(end) = unread.windows(4).position(|end| end == b"\r\n\r\n") {
            let head: Vec<u8> = unread.drain(..end + 4).collect();
            let head = String::from_utf8(head).unwrap();
            let mut words = head.split(' ');
            let path = words.nth(1).unwrap();
            let mut site = self.site.borrow_mut();
            let ask = Ask {
                host: self.host,
                path: path.to_owned(),
                head: head.clone(),
                at: peer.now(),
            };
            let reaction = match &*ask.path {
                "/robots.txt" => Reaction::Status(404),
                _ => {
                    let reaction = (site.script)(&ask);
                    site.journal.push(ask);
                    reaction
                }
            };
            let mut lines = String::new();
            let status = match reaction {
                Reaction::Status(status) => status,
                Reaction::Slow(time) => {
                    peer.wait(time);
                    200
                }
                Reaction::Busy(seconds) => {
                    lines = format!("Retry-After: {seconds}\r\n");
                    429
                }
                Reaction::Reset => return peer.reset(),
            };
            let answer = format!("HTTP/1.1 {status} X\r\n{lines}Content-Length: 0\r\n\r\n");
            peer.send(answer);
        }
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.unread.remove(&peer.connection());
    }
}
