//! The list of all workloads.

use std::error::Error;

/// Requests of one kind over a number of connections. Results can be compared only between the clients of one workload.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    /// One of the paths of `serve`.
    pub(super) path: &'static str,
    /// Bytes of the request body.
    pub(super) body: usize,
    pub(super) connections: u32,
    /// Simultaneous requests on each connection, for [`PIPELINING`] clients. The other clients have one.
    pub(super) depth: u32,
    pub(super) tls: bool,
    /// For an open loop: the rate as a share of the rate of the slowest client in a closed loop.
    pub(super) share: Option<f64>,
    /// The resulting rate in requests per second.
    pub(super) rate: Option<f64>,
    /// The limit first. The limit has no TLS. wrk has no rates, and waits for the body of a response to HEAD.
    /// fasthttp and net/http only send GET, without TLS and rates.
    pub(super) clients: &'static [&'static str],
    /// The client that represents courser in tables with room for only one.
    pub(super) courser: &'static str,
}

impl Workload {
    /// The number of simultaneous requests of `client` on each connection.
    pub(super) fn depth_of(&self, client: &str) -> u32 {
        if PIPELINING.contains(&client) {
            self.depth
        } else {
            1
        }
    }

    /// A short title.
    pub(super) fn title(&self) -> String {
        let mut title = format!("`{} {}`", self.method, self.path);
        if self.body > 0 {
            title += &format!(" of {} bytes", self.body);
        }
        if self.tls {
            title += ", TLS";
        }
        match self.connections {
            1 => title += ", 1 connection",
            more => title += &format!(", {more} connections"),
        }
        if self.depth > 1 {
            title += &format!(
                ", {} requests at a time on each where pipelined",
                self.depth
            );
        }
        title += match self.courser {
            "blocking" => ", blocking calls of as many threads",
            "driven" => ", awaited calls of as many tasks",
            _ => "",
        };
        if let Some(rate) = self.rate {
            title += &format!(", {rate} requests/s");
        }
        title
    }
}

/// The workloads that the words of a command line name, in the order of the list.
///
/// # Errors
/// A word names no workload.
pub(super) fn named(words: &[String]) -> Result<Vec<Workload>, Box<dyn Error>> {
    let stands_for = |word: &str, name: &str| {
        let rest = name.strip_prefix(word);
        word == "all" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for word in words {
        if !ALL.iter().any(|workload| stands_for(word, workload.name)) {
            return Err(format!("there is no workload {word}; see --help").into());
        }
    }
    let is_named = |workload: &&Workload| words.iter().any(|word| stands_for(word, workload.name));
    Ok(ALL.iter().filter(is_named).cloned().collect())
}

/// The list as a help text.
pub(super) fn help() -> String {
    let mut help = "Workloads:\n".to_owned();
    for workload in ALL {
        let mut title = workload.title().replace('`', "");
        if let Some(share) = workload.share {
            title += &format!(", at {share} of what the slowest client can do");
        }
        help += &format!("  {:<16} {title}\n", workload.name);
    }
    help
}

/// Clients that can pipeline.
const PIPELINING: [&str; 4] = ["limit", "wrk", "pipeline", "fasthttp"];

/// 13 bytes over kept connections, for all clients.
const GET: Workload = Workload {
    name: "get",
    method: "GET",
    path: "/13",
    body: 0,
    connections: 64,
    depth: 1,
    tls: false,
    share: None,
    rate: None,
    clients: &[
        "limit", "wrk", "host", "client", "hyper", "reqwest", "ureq", "fasthttp", "net/http",
    ],
    courser: "host",
};

/// Other bodies and methods, with fewer connections, so that buffers stay in the caches of the processor.
const FEW: Workload = GET.over(32);

const POST: Workload = Workload {
    method: "POST",
    ..FEW.by(&["limit", "wrk", "host", "client", "hyper", "reqwest", "ureq"])
};

const PIPELINED: Workload = Workload {
    courser: "pipeline",
    ..GET
        .over(8)
        .by(&["limit", "wrk", "host", "pipeline", "fasthttp"])
};

/// Open loop: latencies are measured from the time at which a request was due.
const OPEN: Workload = GET.by(&["limit", "host", "client", "hyper", "reqwest", "ureq"]);

impl Workload {
    const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    const fn over(self, connections: u32) -> Self {
        Self {
            connections,
            ..self
        }
    }

    const fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    const fn deep(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    const fn by(self, clients: &'static [&'static str]) -> Self {
        Self { clients, ..self }
    }
}

const ALL: &[Workload] = &[
    Workload {
        courser: "call",
        ..GET.named("get-1").over(1).by(&[
            "limit", "wrk", "host", "client", "call", "busy", "hyper", "reqwest", "ureq",
            "fasthttp", "net/http",
        ])
    },
    GET.named("get-8").over(8),
    GET.named("get-64"),
    GET.named("get-512").over(512),
    GET.named("get-4096").over(4096),
    // No clients with a thread for each connection, and not wrk, whose time ends before it has connected.
    GET.named("get-20000")
        .over(20_000)
        .by(&["limit", "host", "client", "hyper", "reqwest"]),
    FEW.named("body-1k").at("/1k"),
    FEW.named("body-16k").at("/16k"),
    FEW.named("body-1m").at("/1m"),
    FEW.named("chunked").at("/chunked"),
    FEW.named("close").at("/close"),
    Workload {
        method: "HEAD",
        ..FEW
            .named("head")
            .by(&["limit", "host", "client", "hyper", "reqwest", "ureq"])
    },
    Workload {
        body: 1 << 10,
        ..POST.named("post-1k")
    },
    Workload {
        body: 1 << 20,
        ..POST.named("post-1m")
    },
    Workload {
        tls: true,
        ..GET
            .named("tls")
            .by(&["wrk", "host", "client", "hyper", "reqwest", "ureq"])
    },
    Workload {
        tls: true,
        ..PIPELINED
            .named("tls-pipelining-16")
            .deep(16)
            .by(&["wrk", "host", "pipeline"])
    },
    Workload {
        tls: true,
        ..GET
            .named("handshakes")
            .at("/close")
            .by(&["host", "client", "hyper", "reqwest"])
    },
    PIPELINED.named("pipelining-4").deep(4),
    PIPELINED.named("pipelining-16").deep(16),
    PIPELINED.named("pipelining-64").deep(64),
    PIPELINED.named("pipelining-256").deep(256),
    Workload {
        courser: "blocking",
        ..GET.named("shared").by(&["blocking", "ureq"])
    },
    Workload {
        courser: "driven",
        ..GET
            .named("async")
            .by(&["driven", "send", "host", "reqwest"])
    },
    Workload {
        share: Some(0.25),
        ..OPEN.named("open-25")
    },
    Workload {
        share: Some(0.5),
        ..OPEN.named("open-50")
    },
    Workload {
        share: Some(0.75),
        ..OPEN.named("open-75")
    },
];

#[cfg(test)]
mod tests {
    use super::{ALL, named};

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        let found = named(&words).unwrap();
        found.iter().map(|workload| workload.name).collect()
    }

    #[test]
    fn a_word_stands_for_all_that_begin_with_it() {
        assert_eq!(names(&["all"]).len(), ALL.len());
        let words = ["tls", "body-1k", "tls"];
        assert_eq!(names(&words), ["body-1k", "tls", "tls-pipelining-16"]);
        assert_eq!(names(&["post", "close"]), ["close", "post-1k", "post-1m"]);
        assert!(named(&["get-".to_owned()]).is_err() && named(&["ge".to_owned()]).is_err());
    }

    #[test]
    fn names_are_unique_and_courser_takes_part() {
        for (at, workload) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != workload.name));
            assert!(workload.clients.contains(&workload.courser));
        }
    }
}
