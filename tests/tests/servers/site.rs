//! What all servers serve: a few files, and a certificate for TLS.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tests::tls::Authority;

/// The files and the certificate.
pub(crate) struct Site {
    pub(crate) authority: Authority,
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) root: PathBuf,
    _directory: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let authority = Authority::new("authority");
        let leaf = authority.leaf(&["127.0.0.1"]);
        let (chain, key) = leaf.write_to(directory.path()).expect("a certificate");
        let root = directory.path().join("root");
        write_files(&root).expect("the files of the site");
        let rest = [directory.path(), &chain, &key];
        for path in rest {
            // Some servers read as another user.
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
        }
        Self {
            authority,
            chain,
            key,
            root,
            _directory: directory,
        }
    }
}

fn write_files(root: &Path) -> std::io::Result<()> {
    fs::create_dir_all(root.join("n"))?;
    write(&root.join("hello"), HELLO)?;
    write(&root.join("etag"), HELLO)?;
    write(&root.join("text.txt"), &text())?;
    for number in 0..NUMBERS {
        let number = number.to_string();
        write(&root.join("n").join(&number), number.as_bytes())?;
    }
    Ok(())
}

/// Writes a file that is old, so that caches find it fresh, and not of a whole second, as files are.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    fs::write(path, content)?;
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
    File::options()
        .write(true)
        .open(path)?
        .set_modified(modified)
}

/// The body of `/hello` and `/etag`.
pub(crate) const HELLO: &[u8] = b"hello";

/// `/n/0` to `/n/99` hold their number.
pub(crate) const NUMBERS: u64 = 100;

/// The body of `/text.txt`, which is worth a content coding.
pub(crate) fn text() -> Vec<u8> {
    "All happy servers are alike.\n".repeat(2000).into_bytes()
}
