//! Servers of applications, which are below `tests/data/servers`; files by the server's own handler where it has one.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};

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
    ..SERVER
};

pub(crate) const HTTP_SERVER: Program = Program {
    name: "Python http.server",
    packages: "python3",
    files: &[PYTHON],
    command: |setup| run(setup, PYTHON, "http_server.py"),
    lacks: &[Feature::Brotli, Feature::Zstd],
    ..SERVER
};

pub(crate) const NODE: Program = Program {
    name: "Node.js",
    packages: "nodejs",
    installed_by: None,
    files: &[NODE_JS],
    command: |setup| run(setup, NODE_JS, "node.js"),
    lacks: &[Feature::Zstd],
    ..SERVER
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
    ..SERVER
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
    ..SERVER
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
    ..SERVER
};

pub(crate) const GO: Program = Program {
    name: "Go net/http",
    packages: "golang-go",
    installed_by: None,
    files: &["/usr/bin/go"],
    command: go,
    lacks: &[Feature::Brotli, Feature::Zstd],
    ..SERVER
};

pub(crate) const GUNICORN: Program = Program {
    name: "gunicorn",
    packages: "gunicorn",
    files: &["/usr/bin/gunicorn"],
    command: gunicorn,
    lacks: &[
        Feature::AnnouncedEnd,
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Resumption,
    ],
    copes: &[
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
        (Feature::Pipelining, Quirk::ForgetsRequests),
        (Feature::TlsPipelining, Quirk::ForgetsRequests),
    ],
    ..SERVER
};

pub(crate) const PHP: Program = Program {
    name: "PHP built-in",
    packages: "php-cli",
    files: &["/usr/bin/php"],
    command: php,
    lacks: &[
        Feature::KeepAlive,
        Feature::IdleEnd,
        Feature::Chunked,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Tls12,
        Feature::Tls13,
        Feature::Resumption,
        Feature::TlsPipelining,
    ],
    copes: &[
        (Feature::Continue, Quirk::NeverContinues),
        (Feature::Refusal, Quirk::NeverContinues),
        (Feature::Pipelining, Quirk::NoPipelining),
    ],
    ..SERVER
};

pub(crate) const PUMA: Program = Program {
    name: "Puma",
    packages: "puma",
    files: &["/usr/bin/puma"],
    command: puma,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[(Feature::Refusal, Quirk::ContinuesThenRefuses)],
    ..SERVER
};

pub(crate) const UVICORN: Program = Program {
    name: "uvicorn",
    packages: "uvicorn",
    files: &["/usr/bin/uvicorn"],
    command: uvicorn,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    ..SERVER
};

fn run(setup: &Setup<'_>, interpreter: &str, script: &str) -> Option<Command> {
    let mut command = setup.application(interpreter);
    command.arg(data(script));
    Some(command)
}

fn go(setup: &Setup<'_>) -> Option<Command> {
    let program = setup.place.join("server");
    let mut go = Command::new("/usr/bin/go");
    go.args(["build", "-o"])
        .arg(&program)
        .arg(data("server.go"));
    let output = go.output().expect("run go");
    assert!(output.status.success(), "{output:?}");
    Some(setup.application(program.to_str()?))
}

fn gunicorn(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/gunicorn");
    command.args(["--worker-class", "gthread", "--threads", "8"]);
    command
        .arg("--keep-alive")
        .arg(setup.idle_seconds().to_string());
    command.arg("--bind").arg(setup.address.to_string());
    command.arg("--worker-tmp-dir").arg(setup.place);
    command.arg("--pythonpath").arg(data(""));
    if setup.is_tls() {
        command.arg("--certfile").arg(&setup.site.chain);
        command.arg("--keyfile").arg(&setup.site.key);
    }
    command.arg("wsgi:application");
    Some(command)
}

fn php(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let mut command = setup.application("/usr/bin/php");
    command.args(["-d", "post_max_size=64M", "-S"]);
    command.arg(setup.address.to_string());
    command.arg("-t").arg(setup.root()).arg(data("router.php"));
    Some(command)
}

fn puma(setup: &Setup<'_>) -> Option<Command> {
    let (address, idle) = (setup.address, setup.idle_seconds());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let bind = if setup.is_tls() {
        format!("ssl://{address}?cert={chain}&key={key}")
    } else {
        format!("tcp://{address}")
    };
    let text = format!("bind \"{bind}\"\nthreads 8, 8\npersistent_timeout {idle}\n");
    let configuration = setup.write("puma.rb", text);
    let mut command = setup.application("/usr/bin/puma");
    command.args(["-e", "production", "-C"]).arg(configuration);
    command.arg(data("config.ru"));
    Some(command)
}

fn uvicorn(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/uvicorn");
    command.arg("--host").arg(setup.address.ip().to_string());
    command.arg("--port").arg(setup.port());
    command
        .arg("--timeout-keep-alive")
        .arg(setup.idle_seconds().to_string());
    command.args(["--http", "h11", "--app-dir"]).arg(data(""));
    if setup.is_tls() {
        command.arg("--ssl-certfile").arg(&setup.site.chain);
        // By default there are no ciphers with GCM, and so none in common with rustls for TLS 1.2.
        command.args(["--ssl-ciphers", "ECDHE+AESGCM"]);
        command.arg("--ssl-keyfile").arg(&setup.site.key);
    }
    command.arg("asgi:application");
    Some(command)
}

const PYTHON: &str = "/usr/bin/python3";
const NODE_JS: &str = "/usr/bin/node";
const RUBY: &str = "/usr/bin/ruby";
