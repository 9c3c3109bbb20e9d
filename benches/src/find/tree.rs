//! Creates directories and files on disk for nginx.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories and files on disk.
pub(crate) struct Tree {
    root: PathBuf,
    /// Paths of all directories, with a `/` at the end.
    directories: Vec<String>,
    files: Vec<String>,
    /// Paths of the wanted files, in the form of find(1).
    wanted: BTreeSet<String>,
}

impl Tree {
    pub(crate) fn plant(
        place: &Path,
        directories: usize,
        files: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let root = place.join("tree");
        fs::create_dir(&root)?;
        let mut paths = vec!["/".to_owned()];
        for number in 0..directories {
            let (above, own) = (number % 50, number / 50);
            let path = match own {
                0 => format!("/d{above}/"),
                _ => format!("/d{above}/e{own}/"),
            };
            fs::create_dir(root.join(&path[1..]))?;
            paths.push(path);
        }
        let mut planted = Vec::with_capacity(files);
        for number in 0..files {
            let directory = &paths[number % paths.len()];
            let name = match number % 645 {
                0 => format!("wanted-{number}.xml"),
                _ => format!("file-{number}.bin"),
            };
            fs::write(root.join(&directory[1..]).join(&name), b"x")?;
            planted.push(format!("{directory}{name}"));
        }
        let find = Command::new("find")
            .arg(&root)
            .args(["-name", NAME, "-type", "f", "-printf", "/%P\\n"])
            .output()?;
        let wanted = String::from_utf8(find.stdout)?;
        Ok(Self {
            root,
            directories: paths,
            files: planted,
            wanted: wanted.lines().map(str::to_owned).collect(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of all files, as in URLs.
    pub(crate) fn files(&self) -> Vec<String> {
        self.files.clone()
    }

    pub(super) fn directories(&self) -> &[String] {
        &self.directories
    }

    pub(super) fn wanted(&self) -> &BTreeSet<String> {
        &self.wanted
    }
}

/// The pattern of the wanted files.
pub(super) const NAME: &str = "wanted-*.xml";
