//! The arguments of a check: what is to be read.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use url::Url;

/// One input of a check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Input {
    /// A page: it and its links are checked.
    Page {
        /// The URL as given.
        spelling: Box<str>,
        /// The URL.
        url: Url,
    },
    /// A file, or a folder with all files below it: their links are checked.
    Path(PathBuf),
    /// A document on standard input: its links are checked.
    Stdin,
    /// URLs that are checked themselves.
    List(List),
}

/// Where a list of URLs is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum List {
    /// In a file.
    File(PathBuf),
    /// On standard input.
    Stdin,
}

impl Input {
    /// The input that an argument means: `-` is standard input, what begins with `http://` or `https://` is a page, and
    /// everything else is the path of a file or a folder.
    ///
    /// # Errors
    /// The URL is not valid, or there is no such file.
    ///
    /// ```
    /// use std::ffi::OsStr;
    /// use check::sources::Input;
    ///
    /// assert!(matches!(Input::from_argument(OsStr::new("https://example.com/"))?, Input::Page { .. }));
    /// assert_eq!(Input::from_argument(OsStr::new("-"))?, Input::Stdin);
    /// assert!(Input::from_argument(OsStr::new("no/such/file.md")).is_err());
    /// # Ok::<(), check::sources::InputError>(())
    /// ```
    pub fn from_argument(argument: &OsStr) -> Result<Self, InputError> {
        if argument == "-" {
            return Ok(Self::Stdin);
        }
        if let Some(text) = argument.to_str()
            && is_web(text)
        {
            return match Url::parse(text) {
                Ok(url) => Ok(Self::Page {
                    spelling: text.into(),
                    url,
                }),
                Err(error) => Err(InputError::Url(text.into(), error)),
            };
        }
        existing(Path::new(argument)).map(Self::Path)
    }

    /// The list of URLs that the value of `--urls` means: `-` is standard input, everything else is a file.
    ///
    /// # Errors
    /// There is no such file, or it is a folder.
    pub fn from_list(value: &OsStr) -> Result<Self, InputError> {
        if value == "-" {
            return Ok(Self::List(List::Stdin));
        }
        let path = existing(Path::new(value))?;
        if path.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(InputError::Path(path, error));
        }
        Ok(Self::List(List::File(path)))
    }

    /// Whether the input is read from standard input. Only one input can be.
    pub fn is_stdin(&self) -> bool {
        matches!(self, Self::Stdin | Self::List(List::Stdin))
    }
}

/// Why an argument is no input. The text names the argument.
#[derive(Debug)]
pub enum InputError {
    /// The URL is not valid.
    Url(Box<str>, url::ParseError),
    /// There is no such file, or it cannot be looked at.
    Path(PathBuf, io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url, error) => write!(f, "{url}: not a valid URL: {error}"),
            Self::Path(path, error) if error.kind() == io::ErrorKind::NotFound => write!(
                f,
                "{}: no such file or folder (a URL begins with http:// or https://)",
                path.display()
            ),
            Self::Path(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for InputError {}

fn is_web(text: &str) -> bool {
    let starts = |scheme: &str| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    starts("http://") || starts("https://")
}

fn existing(path: &Path) -> Result<PathBuf, InputError> {
    match path.metadata() {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(InputError::Path(path.to_owned(), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(argument: &str) -> Result<Input, String> {
        Input::from_argument(OsStr::new(argument)).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_told_apart() {
        assert_eq!(read("-"), Ok(Input::Stdin));
        assert_eq!(read("."), Ok(Input::Path(".".into())));
        let Ok(Input::Page { spelling, url }) = read("HTTP://Example.com/a b") else {
            panic!("a page");
        };
        assert_eq!(&*spelling, "HTTP://Example.com/a b");
        assert_eq!(url.as_str(), "http://example.com/a%20b");
    }

    #[test]
    fn a_folder_is_no_list() {
        let folder = Input::from_list(OsStr::new("/")).expect_err("a folder");
        assert_eq!(folder.to_string(), "/: is a directory");
    }
}
