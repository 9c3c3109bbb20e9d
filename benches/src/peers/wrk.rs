//! wrk, and what it prints.

use std::error::Error;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use tempfile::NamedTempFile;

/// A command that runs wrk with a script in Lua, and the file of the script, which has to stay as long as wrk runs. wrk
/// takes whole seconds.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn command(
    connections: usize,
    time: Duration,
    lua: &str,
    url: &str,
) -> Result<(Command, NamedTempFile), Box<dyn Error>> {
    let script = NamedTempFile::new()?;
    script.as_file().write_all(lua.as_bytes())?;
    let mut command = Command::new("wrk");
    command.args(["--threads", "1"]);
    command.args(["--connections", &connections.to_string()]);
    command.args(["--duration", &time.as_secs_f64().ceil().to_string()]);
    command.arg("--script").arg(script.path()).arg(url);
    Ok((command, script))
}

/// The number of requests and the requests per second in the output of wrk. `None` if wrk reports errors, or for other
/// output.
pub(crate) fn numbers(output: &str) -> Option<(u64, f64)> {
    if output.contains("Socket errors:") || output.contains("Non-2xx") {
        return None;
    }
    let word_before = |mark: &str| output.split(mark).next()?.split_whitespace().last();
    let requests = word_before(" requests in ")?.parse().ok()?;
    let (_, rate) = output.split_once("Requests/sec:")?;
    let rate = rate.split_whitespace().next()?.parse().ok()?;
    (requests > 0).then_some((requests, rate))
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn reads_what_wrk_prints() {
        let output = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 2 connections\n\
                      \x20 123456 requests in 1.10s, 11.22MB read\nRequests/sec: 112233.44\n\
                      Transfer/sec:     10.20MB\n";
        assert_eq!(numbers(output), Some((123_456, 112_233.44)));
        assert_eq!(
            numbers(&format!("{output}  Socket errors: connect 1\n")),
            None
        );
        assert_eq!(numbers("unable to connect"), None);
    }
}
