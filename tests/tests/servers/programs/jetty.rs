//! Jetty: files by its own servlet, the rest by an application.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature;
use crate::running::{Setup, data};

pub(crate) const JETTY: Program = Program {
    name: "Jetty",
    packages: "jetty9 default-jdk-headless",
    installed_by: None,
    files: &["/usr/bin/javac", "/usr/share/java/jetty9-server.jar"],
    command,
    lacks: &[Feature::Brotli, Feature::Zstd],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/java");
    if setup.is_tls() {
        command.env("STORE", store(setup));
    }
    let jars: Vec<String> = JARS
        .iter()
        .map(|name| format!("/usr/share/java/{name}.jar"))
        .collect();
    command.arg("-cp").arg(jars.join(":"));
    command.arg(data("Jetty.java"));
    Some(command)
}

/// A key store, as Java wants.
fn store(setup: &Setup<'_>) -> std::path::PathBuf {
    let store = setup.place.join("store.p12");
    let mut openssl = Command::new("/usr/bin/openssl");
    openssl.args(["pkcs12", "-export", "-passout", "pass:secret"]);
    openssl.arg("-in").arg(&setup.site.chain);
    openssl.arg("-inkey").arg(&setup.site.key);
    openssl.arg("-out").arg(&store);
    let output = openssl.output().expect("run openssl");
    assert!(output.status.success(), "{output:?}");
    store
}

const JARS: &[&str] = &[
    "jetty9-http",
    "jetty9-io",
    "jetty9-security",
    "jetty9-server",
    "jetty9-servlet",
    "jetty9-util",
    "servlet-api",
];
