//! Servers of applications, which are below `tests/data/servers`; files by the server's own handler where it has one.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::quirk::Quirk;
use crate::running::{Setup, data};

pub(crate) const AIOHTTP: Program = Program {
    name: "aiohttp",
    command: |setup| run(setup, PYTHON, "aiohttp_server.py"),
    lacks: &[HalfClose, Trailers, Brotli, Zstd],
    ..SERVER
};

pub(crate) const HTTP_SERVER: Program = Program {
    name: "Python http.server",
    command: |setup| run(setup, PYTHON, "http_server.py"),
    lacks: &[Brotli, Zstd],
    ..SERVER
};

pub(crate) const WAITRESS: Program = Program {
    name: "waitress",
    command: |setup| match setup.is_tls() {
        true => None,
        false => run(setup, PYTHON, "waitress_server.py"),
    },
    lacks: &[
        AnnouncedEnd,
        HalfClose,
        Trailers,
        Brotli,
        Zstd,
        Tls12,
        Tls13,
        Resumption,
    ],
    copes: &[
        (Head, Quirk::ClosesAfterHead),
        (NoContent, Quirk::ClosesAfterNoContent),
        (Refusal, Quirk::ContinuesThenRefuses),
    ],
    ..SERVER
};

pub(crate) const WEBRICK: Program = Program {
    name: "WEBrick",
    command: |setup| run(setup, RUBY, "webrick.rb"),
    lacks: &[HalfClose, Trailers, Brotli, Zstd],
    copes: &[
        (Refusal, Quirk::NeverContinues),
        (NotModified, Quirk::IgnoresDates),
    ],
    ..SERVER
};

pub(crate) const GUNICORN: Program = Program {
    name: "gunicorn",
    command: gunicorn,
    lacks: &[AnnouncedEnd, HalfClose, Trailers, Brotli, Zstd, Resumption],
    copes: &[
        (Refusal, Quirk::ContinuesThenRefuses),
        (Pipelining, Quirk::ForgetsRequests),
    ],
    ..SERVER
};

pub(crate) const PHP: Program = Program {
    name: "PHP built-in",
    command: php,
    lacks: &[
        KeepAlive, IdleEnd, Chunked, Trailers, Brotli, Zstd, Tls12, Tls13, Resumption,
    ],
    copes: &[
        (Continue, Quirk::NeverContinues),
        (Refusal, Quirk::NeverContinues),
        (Pipelining, Quirk::NoPipelining),
    ],
    ..SERVER
};

pub(crate) const PUMA: Program = Program {
    name: "Puma",
    command: puma,
    lacks: &[HalfClose, Trailers, Brotli, Zstd],
    copes: &[(Refusal, Quirk::ContinuesThenRefuses)],
    ..SERVER
};

pub(crate) const UVICORN: Program = Program {
    name: "uvicorn",
    command: uvicorn,
    lacks: &[HalfClose, Trailers, Brotli, Zstd],
    ..SERVER
};

fn run(setup: &Setup<'_>, interpreter: &str, script: &str) -> Option<Command> {
    let mut command = setup.application(interpreter);
    command.arg(data(script));
    Some(command)
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
const RUBY: &str = "/usr/bin/ruby";
