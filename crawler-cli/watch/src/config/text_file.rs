//! Files with a configuration or with secrets: small texts that are read as a whole, while the service goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a file of up to `longest` bytes. What may never end, or never begin, is refused: a pipe is not waited for.
///
/// # Errors
/// The file cannot be read, is longer, is not UTF-8, or is a pipe, a socket or a folder.
pub(super) fn read(path: &Path, longest: u64) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let file = open(path)?;
    let kind = file.metadata()?.file_type();
    // A device such as /dev/null is an empty file.
    if !kind.is_file() && !kind.is_char_device() {
        return Err(wrong("it is not a file".to_owned()));
    }
    let mut text = String::new();
    file.take(longest + 1).read_to_string(&mut text)?;
    match text.len() as u64 > longest {
        true => Err(wrong(format!("longer than {} MiB", longest >> 20))),
        false => Ok(text),
    }
}

/// Does not wait until a pipe has a writer.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_small_text_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let why = |path: &Path| read(path, 1 << 20).expect_err("refused").to_string();
        assert_eq!(why(&pipe), "it is not a file");
        assert_eq!(why(folder.path()), "it is not a file");
        assert_eq!(why(Path::new("/dev/zero")), "longer than 1 MiB");
        assert!(why(&file).contains("No such file"));
        fs::write(&file, vec![b'x'; 1 << 20]).expect("written");
        assert_eq!(read(&file, 1 << 20).expect("read").len(), 1 << 20);
        fs::write(&file, vec![b'x'; (1 << 20) + 1]).expect("written");
        assert_eq!(why(&file), "longer than 1 MiB");
        fs::write(&file, b"\xff").expect("written");
        assert!(why(&file).contains("UTF-8"));
        assert_eq!(read(Path::new("/dev/null"), 1).expect("empty"), "");
    }
}
