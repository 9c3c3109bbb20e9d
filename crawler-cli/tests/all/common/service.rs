//! The service of `crawler-cli watch run`, as tests start and end it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::crawler;

/// A service that runs.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) address: String,
    log: Receiver<String>,
    /// All lines of the log that were read.
    seen: Vec<String>,
}

impl Service {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = service(folder);
        command.envs(variables.iter().copied());
        Self::start_command(command)
    }

    /// Starts what runs the service, and waits for its first line.
    pub(crate) fn start_command(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let (sender, log) = channel();
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        thread::spawn(move || {
            for line in errors.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut first = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut first).expect("a line");
        let address = first.trim_end().strip_prefix("listening on http://");
        let address = address.unwrap_or_default().to_owned();
        let mut service = Self {
            child,
            address,
            log,
            seen: Vec::new(),
        };
        if service.address.is_empty() {
            panic!("{first:?} {:?}", service.rest_of_log());
        }
        service
    }

    /// Waits for a line of the log that has this text.
    pub(crate) fn line(&mut self, text: &str) -> String {
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {text:?} ({error}):\n{}", self.seen.join("\n")),
            }
        }
    }

    pub(crate) fn rest_of_log(&mut self) -> String {
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return self.seen.join("\n"),
                Err(RecvTimeoutError::Timeout) => panic!("the log does not end"),
            }
        }
    }

    /// The status and the body of a page.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head[9..12].parse().expect("a status"), body.to_owned())
    }

    /// Waits until a page has this text.
    pub(crate) fn page_with(&self, path: &str, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let (_, body) = self.page(path);
            if body.contains(text) {
                return body;
            }
            assert!(Instant::now() < end, "no {text:?} in {path}:\n{body}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("a signal");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "the service does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the service as an operator does, and returns its log.
    pub(crate) fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.wait();
        let log = self.rest_of_log();
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The service of a folder, without a service manager.
pub(crate) fn service(folder: &Path) -> Command {
    let config = folder.join("watch.toml").display().to_string();
    let mut command = crawler(&["watch", "run", "--config", &config]);
    command
        .current_dir(folder)
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC")
        .env_remove("WATCHDOG_PID");
    command
}

/// A folder with a configuration and a list of URLs. Services of tests listen at any free port.
pub(crate) fn folder(config: &str, urls: &[String]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = match config.contains("listen") {
        true => "",
        false => "\n[http]\nlisten = '127.0.0.1:0'\n",
    };
    let config = format!("{config}{listen}");
    fs::write(folder.path().join("watch.toml"), config).expect("written");
    fs::write(folder.path().join("urls.txt"), urls.join("\n")).expect("written");
    folder
}

/// The program's end with these arguments, in a folder.
pub(crate) fn watch(folder: &Path, args: &[&str]) -> Output {
    let output = crawler(&[&["watch"], args].concat())
        .current_dir(folder)
        .output();
    output.expect("the program runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Longer than anything takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
