//! fasthttp and Go's net/http: a program in Go, built where `go` and the sources of Debian's
//! golang-github-valyala-fasthttp-dev are installed.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The clients of the program.
pub(crate) const CLIENTS: [&str; 2] = ["fasthttp", "net/http"];

/// Whether the program can be built.
#[must_use]
pub fn installed() -> bool {
    let fasthttp = Path::new(GOPATH).join("src/github.com/valyala/fasthttp");
    fasthttp.is_dir() && crate::process::installed("go")
}

/// Builds [`program`]. This takes half a minute for the first time.
///
/// # Errors
/// `go` failed; it printed why.
pub(crate) fn build() -> Result<(), Box<dyn Error>> {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(program()?).arg(SOURCE);
    go.envs([("GOPATH", GOPATH), ("GO111MODULE", "off"), ("GOFLAGS", "")]);
    let status = go.env("GOCACHE", folder()?.join("cache")).status()?;
    if !status.success() {
        return Err(format!("go build ended with {status}").into());
    }
    Ok(())
}

/// The path of the program.
///
/// # Errors
/// The path of this program is unknown.
pub(crate) fn program() -> io::Result<PathBuf> {
    Ok(folder()?.join("fasthttp"))
}

/// A folder beside this program.
fn folder() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("go"))
}

/// Where Debian installs sources of packages in Go.
const GOPATH: &str = "/usr/share/gocode";
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/fasthttp.go");
