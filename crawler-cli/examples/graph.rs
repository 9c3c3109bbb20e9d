//! A graph of pages that relies on `crawler-cli watch`: it has its URLs watched, detaches the nodes whose URLs are pruned,
//! and attaches those again that come back.
//!
//! ```text
//! graph --config watch.toml --graph graph.json submit urls.txt      # nodes, and `watch add` for each
//! graph --config watch.toml --graph graph.json follow               # `watch export --changes --since CURSOR --follow`
//! graph --config watch.toml --graph graph.json show
//! ```
//!
//! The cursor of the last change is saved together with the graph, in one file that is replaced as a whole. So each change
//! is applied once, whichever side is killed and when: what was applied is before the cursor, and what was not is after
//! it. Whoever changes the graph holds a lock meanwhile, so that `submit` and `follow` may run side by side. A graph in a
//! database would do all of that in one transaction.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The graph, and how far it has followed the changes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Graph {
    /// The cursor of the last change that was applied; `None` before the first one.
    pub(crate) cursor: Option<serde_json::Value>,
    /// The nodes by their URLs.
    pub(crate) nodes: BTreeMap<String, Node>,
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Node {
    /// Whether the node takes part in the graph.
    pub(crate) is_attached: bool,
    /// How often the node was detached.
    pub(crate) detached: u64,
    /// How often it was attached again.
    pub(crate) attached: u64,
}

/// A line of `watch export --changes`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Change {
    /// Unique, and later for later changes.
    pub(crate) cursor: serde_json::Value,
    /// The URL as it was submitted.
    pub(crate) url: String,
    /// The new state.
    pub(crate) to: String,
}

impl Graph {
    /// Reads the graph; an empty one if there is no file.
    pub(crate) fn load(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file. After a crash it has the old graph or the new one.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Reads the graph, changes it and stores it, while nobody else does.
    fn update(path: &Path, change: impl FnOnce(&mut Self)) -> io::Result<Self> {
        let lock = File::create(path.with_extension("lock"))?;
        // The lock ends with the file, also if the process is killed.
        lock.lock()?;
        let mut graph = Self::load(path)?;
        change(&mut graph);
        graph.save(path)?;
        Ok(graph)
    }

    /// Applies a change. Changes of URLs that are no nodes move the cursor alone.
    pub(crate) fn apply(&mut self, change: &Change) {
        self.cursor = Some(change.cursor.clone());
        let Some(node) = self.nodes.get_mut(&change.url) else {
            return;
        };
        match (&*change.to, node.is_attached) {
            ("PRUNED", true) => {
                node.is_attached = false;
                node.detached += 1;
            }
            // Back, after it was pruned: a URL that is pruned has no other way out.
            ("ALIVE", false) => {
                node.is_attached = true;
                node.attached += 1;
            }
            _ => {}
        }
    }

    /// What `--since` gets.
    fn since(&self) -> String {
        match &self.cursor {
            None => "0".to_owned(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// Where the program, its configuration and the graph are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The program `crawler-cli`.
    pub(crate) program: PathBuf,
    /// The configuration of the service.
    pub(crate) config: PathBuf,
    /// The file of the graph.
    pub(crate) graph: PathBuf,
}

impl Places {
    fn watch(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["watch", verb, "--config"]).arg(&self.config);
        command
    }

    /// Adds nodes, and has their URLs watched. May be repeated.
    pub(crate) fn submit(&self, urls: &[String]) -> Result<(), Box<dyn Error>> {
        let node = Node {
            is_attached: true,
            ..Node::default()
        };
        // First the nodes: a change of a URL finds its node.
        Graph::update(&self.graph, |graph| {
            for url in urls {
                graph.nodes.entry(url.clone()).or_insert(node);
            }
        })?;
        for urls in urls.chunks(500) {
            let status = self
                .watch("add")
                .args(["--set", "graph"])
                .args(urls)
                .status()?;
            if !status.success() {
                return Err(format!("watch add: {status}").into());
            }
        }
        Ok(())
    }

    /// Applies the changes as they come, until `is_over` says so after a change, or for ever. A service that is not there
    /// is waited for.
    pub(crate) fn follow(
        &self,
        mut is_over: impl FnMut(&Graph) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let mut graph = Graph::load(&self.graph)?;
        while !is_over(&graph) {
            let mut export = Export::start(self, &graph)?;
            let mut changes = Vec::new();
            while let Some(line) = export.next()? {
                changes.push(serde_json::from_str(&line)?);
                // What is here already is applied at once, and stored once.
                if export.has_more() {
                    continue;
                }
                graph = Graph::update(&self.graph, |graph| {
                    changes
                        .drain(..)
                        .for_each(|change: Change| graph.apply(&change));
                })?;
                if is_over(&graph) {
                    break;
                }
            }
            drop(export);
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// `watch export --changes --follow`, which is ended with this.
struct Export {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Export {
    fn start(places: &Places, graph: &Graph) -> Result<Self, Box<dyn Error>> {
        let mut export = places.watch("export");
        export.args(["--changes", "--follow", "--since", &graph.since()]);
        let mut child = export.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout),
        })
    }

    /// The next whole line. A line that was cut, because the program was killed, is read again after the cursor.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.ends_with('\n').then_some(line))
    }

    /// Whether the next line is here already.
    fn has_more(&self) -> bool {
        self.lines.buffer().contains(&b'\n')
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(dead_code, reason = "a test uses the graph as a module")]
fn main() -> Result<(), Box<dyn Error>> {
    const USAGE: &str =
        "usage: graph [--program FILE] [--config FILE] [--graph FILE] submit FILE | follow | show";
    let mut places = Places {
        program: "crawler-cli".into(),
        config: "watch.toml".into(),
        graph: "graph.json".into(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE);
        match &*word {
            "--program" => places.program = value()?.into(),
            "--config" => places.config = value()?.into(),
            "--graph" => places.graph = value()?.into(),
            "submit" => {
                let text = fs::read_to_string(value()?)?;
                let urls: Vec<String> = text.lines().map(str::to_owned).collect();
                return places.submit(&urls);
            }
            "follow" => return places.follow(|_| false),
            "show" => {
                let graph = Graph::load(&places.graph)?;
                for (url, node) in &graph.nodes {
                    let state = if node.is_attached {
                        "attached"
                    } else {
                        "detached"
                    };
                    println!("{state} {url}");
                }
                return Ok(());
            }
            _ => break,
        }
    }
    Err(USAGE.into())
}
