//! PostgreSQL servers for tests: each in a folder of its own, which ends and is removed with the process of the test, however
//! that process ends.
//!
//! Used by the tests of the library as well, so this file needs nothing of the others here.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module, and none uses all of it"
)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// A server.
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    /// Stops the server and removes the folder when its standard input ends.
    watcher: Child,
}

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What makes a server of tests quick; what is committed is lost with the machine, and no test stops that.
pub(crate) const QUICK: [&str; 3] = ["fsync=off", "full_page_writes=off", "max_connections=200"];

impl Cluster {
    /// Makes and starts a server with these settings, such as `fsync=off`. Connections to 127.0.0.1 need no password.
    pub(crate) fn new(settings: &[&str]) -> Self {
        Self::with_files(settings, &[])
    }

    /// Makes and starts a server that finds these files in its folder, by their names in the settings.
    pub(crate) fn with_files(settings: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("courser-postgres-")
            .tempdir()
            .expect("a folder")
            .keep();
        let place = folder.display();
        as_postgres("true"); // Fails with a clear message if the user is missing.
        run(Command::new("chmod").args(["755"]).arg(&folder));
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        // A server that was paused gets its signals when it goes on; a program that still makes files ends soon.
        let stop = format!(
            "cat; read -r pid <{place}/data/postmaster.pid; kill -CONT $pid $(cat /proc/$pid/task/$pid/children); \
             {bin}/pg_ctl -D {place}/data -m immediate stop; until rm -rf {place}; do sleep 0.1; done",
            bin = programs().display()
        );
        let watcher = user(Command::new("setsid"))
            .args(["sh", "-c", &stop])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("setsid");
        let cluster = Self {
            port: 0,
            settings: settings
                .iter()
                .map(|setting| (*setting).to_owned())
                .collect(),
            folder,
            watcher,
        };
        cluster.program(
            "initdb",
            &[
                "-A",
                "trust",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ],
        );
        for (name, content) in files {
            let path = cluster.folder.join("data").join(name);
            std::fs::write(&path, content).expect("written");
            run(Command::new("chmod").arg("600").arg(&path));
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(&path));
            }
        }
        cluster.started_anywhere()
    }

    /// A server that all tests of the process share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(&QUICK))
    }

    /// Starts the server on a port that is free.
    fn started_anywhere(mut self) -> Self {
        for _ in 0..20 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a port");
            self.port = free.local_addr().expect("an address").port();
            drop(free);
            // Another process may have taken the port meanwhile.
            if self.try_start() {
                return self;
            }
        }
        panic!("PostgreSQL does not start: {}", self.log());
    }

    fn try_start(&self) -> bool {
        let mut options = format!(
            "-c listen_addresses=127.0.0.1 -p {} -k {}",
            self.port,
            self.folder.display()
        );
        for setting in &self.settings {
            options.push_str(&format!(" -c {setting}"));
        }
        let wait = PATIENCE.as_secs().to_string();
        self.pg_ctl(&["-w", "-t", &wait, "-o", &options, "start"])
    }

    /// Starts the server again, on its port.
    pub(crate) fn start(&self) {
        let began = Instant::now();
        while !self.try_start() {
            assert!(
                began.elapsed() < PATIENCE,
                "PostgreSQL does not start: {}",
                self.log()
            );
        }
    }

    /// Stops the server: its connections end.
    pub(crate) fn stop(&self) {
        let first = self.first_process();
        assert!(self.pg_ctl(&["-w", "-m", "fast", "stop"]), "{}", self.log());
        // `pg_ctl` waits for the end of the file that names the process, which ends a moment later.
        wait_for_end(&[first]);
    }

    pub(crate) fn restart(&self) {
        self.stop();
        self.start();
    }

    /// Kills all processes of the server, as a machine that fails does.
    pub(crate) fn kill(&self) {
        self.pause();
        let processes = self.processes();
        for process in &processes {
            signal(*process, Signal::KILL);
        }
        wait_for_end(&processes);
        // The next server could take a process that is dead, but not yet collected, for one that runs.
        for name in [
            "data/postmaster.pid".to_owned(),
            format!(".s.PGSQL.{}.lock", self.port),
        ] {
            std::fs::remove_file(self.folder.join(name)).expect("a file of the server");
        }
    }

    /// Stops all processes of the server, without a word to those who are connected. Who connects waits.
    pub(crate) fn pause(&self) {
        // The first one begins the others.
        signal(self.first_process(), Signal::STOP);
        for process in self.processes() {
            signal(process, Signal::STOP);
        }
    }

    /// Lets a server that was paused go on.
    pub(crate) fn resume(&self) {
        for process in self.processes() {
            signal(process, Signal::CONT);
        }
    }

    /// The process that accepts connections.
    pub(crate) fn first_process(&self) -> Pid {
        let file = std::fs::read_to_string(self.folder.join("data/postmaster.pid"));
        pid(file.expect("a server that runs").lines().next())
    }

    /// All processes of the server, the first one first.
    fn processes(&self) -> Vec<Pid> {
        let first = self.first_process();
        let number = first.as_raw_pid();
        let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().map(|child| pid(Some(child)));
        std::iter::once(first).chain(children).collect()
    }

    fn pg_ctl(&self, args: &[&str]) -> bool {
        let mut command = user(Command::new(programs().join("pg_ctl")));
        command.arg("-D").arg(self.folder.join("data"));
        command.arg("-l").arg(self.folder.join("log")).args(args);
        command.current_dir(&self.folder);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().expect("pg_ctl").success()
    }

    fn program(&self, name: &str, args: &[&str]) {
        let mut command = user(Command::new(programs().join(name)));
        command.arg("-D").arg(self.folder.join("data")).args(args);
        run(command.current_dir(&self.folder));
    }

    /// What the server has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database. Returns its address.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs statements. Returns what they print.
    pub(crate) fn psql(&self, database: &str, statements: &str) -> String {
        let mut command = Command::new(programs().join("psql"));
        command.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            statements,
        ]);
        run(command.arg(self.url(database)))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        // A watcher that is gone has done its work.
        let _ = self.watcher.wait();
    }
}

/// Where Debian keeps the programs of the newest server.
fn programs() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL of Debian");
        let numbered = versions.flatten().filter_map(|version| {
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        });
        numbered.max().expect("a version of PostgreSQL").1
    })
}

fn pid(text: Option<&str>) -> Pid {
    let number = text.and_then(|text| text.trim().parse().ok());
    number.and_then(Pid::from_raw).expect("a process")
}

/// A process that has ended meanwhile needs no signal.
fn signal(process: Pid, signal: Signal) {
    let _ = rustix::process::kill_process(process, signal);
}

fn wait_for_end(processes: &[Pid]) {
    let began = Instant::now();
    while processes.iter().any(|process| runs(*process)) {
        assert!(began.elapsed() < PATIENCE, "{processes:?} do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has not ended.
pub(crate) fn runs(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
    // The state follows the name, which ends with a parenthesis. Z: ended, but not yet collected.
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(") ").next().unwrap_or_default();
        !state.starts_with(['Z', 'X'])
    })
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// The command as another user, if this one is root: PostgreSQL refuses to be run by root.
fn user(command: Command) -> Command {
    if !is_root() {
        return command;
    }
    let mut other = Command::new("setpriv");
    other.args([
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "--",
    ]);
    other.arg(command.get_program());
    other
}

fn as_postgres(program: &str) {
    run(&mut user(Command::new(program)));
}

/// Runs a command that must succeed. Returns what it prints.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}
