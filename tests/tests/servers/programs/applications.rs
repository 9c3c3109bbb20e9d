//! Servers that are programs of the tests, each in a file below `tests/data/servers` that an interpreter runs: files by the
//! server's own handler where it has one, the rest by an application.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const AIOHTTP: Program = Program {
    name: "aiohttp",
    packages: "python3-aiohttp",
    files: &["/usr/lib/python3/dist-packages/aiohttp/__init__.py"],
    command: |setup| run(setup, PYTHON, "aiohttp_server.py"),
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    ..APPLICATION
};

pub(crate) const HTTP_SERVER: Program = Program {
    name: "Python http.server",
    packages: "python3",
    files: &[PYTHON],
    command: |setup| run(setup, PYTHON, "http_server.py"),
    ..APPLICATION
};

pub(crate) const NODE: Program = Program {
    name: "Node.js",
    packages: "nodejs",
    installed_by: None,
    files: &[NODE_JS],
    command: |setup| run(setup, NODE_JS, "node.js"),
    lacks: &[Feature::Zstd],
    ..APPLICATION
};

pub(crate) const TWISTED: Program = Program {
    name: "Twisted Web",
    packages: "python3-twisted",
    installed_by: None,
    files: &["/usr/lib/python3/dist-packages/twisted/__init__.py"],
    command: |setup| run(setup, PYTHON, "twisted_server.py"),
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Gzip,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[
        (Feature::NoContent, Quirk::NoContentLength),
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
    ],
    ..APPLICATION
};

pub(crate) const WAITRESS: Program = Program {
    name: "waitress",
    packages: "python3-waitress",
    files: &["/usr/lib/python3/dist-packages/waitress/__init__.py"],
    command: |setup| match setup.is_tls() {
        true => None,
        false => run(setup, PYTHON, "waitress_server.py"),
    },
    lacks: &[
        Feature::AnnouncedEnd,
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Tls12,
        Feature::Tls13,
        Feature::Resumption,
        Feature::TlsPipelining,
    ],
    copes: &[
        (Feature::Head, Quirk::ClosesAfterHead),
        (Feature::NoContent, Quirk::ClosesAfterNoContent),
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
    ],
    ..APPLICATION
};

pub(crate) const WEBRICK: Program = Program {
    name: "WEBrick",
    packages: "ruby-webrick",
    files: &[
        RUBY,
        "/usr/share/rubygems-integration/all/specifications/webrick-1.8.1.gemspec",
    ],
    command: |setup| run(setup, RUBY, "webrick.rb"),
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[
        (Feature::TlsPipelining, Quirk::ForgetsRequests),
        (Feature::Refusal, Quirk::NeverContinues),
        (Feature::NotModified, Quirk::IgnoresDates),
    ],
    ..APPLICATION
};

/// What most of them have in common.
const APPLICATION: Program = Program {
    name: "",
    packages: "",
    installed_by: Some(Script::Long),
    files: &[],
    forwards: false,
    hello: site::HELLO,
    command: |_| None,
    lacks: &[Feature::Brotli, Feature::Zstd],
    copes: &[],
};

fn run(setup: &Setup<'_>, interpreter: &str, script: &str) -> Option<Command> {
    let mut command = setup.application(interpreter);
    command.arg(data(script));
    Some(command)
}

const PYTHON: &str = "/usr/bin/python3";
const NODE_JS: &str = "/usr/bin/node";
const RUBY: &str = "/usr/bin/ruby";
