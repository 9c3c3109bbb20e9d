//! Texts, and what is written as a text: names, files, stores, addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::{Scalar, array, list, quoted, string};
use plain::values;
use store::{Place, postgres};

/// A text that is not empty and has no control characters.
pub(in crate::config) struct Text;

impl Scalar for Text {
    type Value = String;
    const ALLOWED: &'static str = "a text without control characters";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<String, String> {
        let text = string(value)?;
        match text {
            "" => Err("empty".to_owned()),
            text if text.chars().any(char::is_control) => Err("has control characters".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn show(value: &String) -> Option<String> {
        Some(quoted(value)).filter(|_| !value.is_empty())
    }
}

/// The name of a set or a schedule.
pub(in crate::config) struct Name;

impl Scalar for Name {
    type Value = String;
    const ALLOWED: &'static str = values::NAME;

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<String, String> {
        let name = string(value)?;
        values::name(name).map_err(|_| format!("{} is no name", quoted(name)))
    }

    fn show(value: &String) -> Option<String> {
        <Text as Scalar>::show(value)
    }
}

/// Texts of any characters but NUL.
pub(in crate::config) struct Words;

impl Scalar for Words {
    type Value = Vec<String>;
    const ALLOWED: &'static str = "a list of texts";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Vec<String>, String> {
        let word = |value: &Spanned<DeValue<'_>>| match string(value.get_ref())? {
            word if word.contains('\0') => Err("a text has a NUL character".to_owned()),
            word => Ok(word.to_owned()),
        };
        array(value)?.iter().map(word).collect()
    }

    fn show(value: &Vec<String>) -> Option<String> {
        Some(list(value.iter().map(|word| quoted(word))))
    }
}

/// Host names without scheme and port.
pub(in crate::config) struct HostNames;

impl Scalar for HostNames {
    type Value = Vec<String>;
    const ALLOWED: &'static str = "a list of host names, such as [\"watch.example.org\"]";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Vec<String>, String> {
        let name = |value: &Spanned<DeValue<'_>>| {
            let name = string(value.get_ref())?;
            let is_part = |part: &str| {
                let is_letter = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
                !part.is_empty() && part.bytes().all(is_letter)
            };
            match name.len() < 254 && name.split('.').all(is_part) {
                true => Ok(name.to_ascii_lowercase()),
                false => Err(format!("{} is no host name", quoted(name))),
            }
        };
        array(value)?.iter().map(name).collect()
    }

    fn show(value: &Vec<String>) -> Option<String> {
        Some(list(value.iter().map(|name| quoted(name))))
    }
}

/// A file or folder.
pub(in crate::config) struct FilePath;

impl Scalar for FilePath {
    type Value = PathBuf;
    const ALLOWED: &'static str = "a path, relative to the folder of the configuration";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<PathBuf, String> {
        match string(value)? {
            "" => Err("empty".to_owned()),
            text if text.contains('\0') => Err("has a NUL character".to_owned()),
            text => Ok(folder.join(text)),
        }
    }

    fn show(value: &PathBuf) -> Option<String> {
        Some(quoted(&value.display().to_string()))
    }
}

/// The store: `sqlite:FILE` or `postgres://…`.
pub(in crate::config) struct StoreUrl;

impl Scalar for StoreUrl {
    type Value = Place;
    const ALLOWED: &'static str = "\"sqlite:FILE\" or \"postgres://USER@HOST/DATABASE\"";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Place, String> {
        let url = string(value)?;
        // The text is not repeated: it may have a password.
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let address = url.parse::<postgres::Address>();
            let address = address.map_err(|error| error.to_string())?;
            return Ok(Place::Server(Box::new(address)));
        }
        let Some(file) = url.strip_prefix("sqlite:") else {
            return Err("not the URL of a store".to_owned());
        };
        let file = file.strip_prefix("//").unwrap_or(file);
        match file {
            "" | ":memory:" => Err("a store needs a file".to_owned()),
            file if file.contains('\0') => Err("has a NUL character".to_owned()),
            file => Ok(Place::File(folder.join(file))),
        }
    }

    fn show(value: &Place) -> Option<String> {
        Some(quoted(&match value {
            Place::File(file) => format!("sqlite:{}", file.display()),
            Place::Server(address) => address.shown(),
        }))
    }
}

/// An address with a port.
pub(in crate::config) struct Address;

impl Scalar for Address {
    type Value = SocketAddr;
    const ALLOWED: &'static str =
        "an address and a port, such as \"127.0.0.1:9400\" or \"[::1]:0\"; port 0: any free port";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<SocketAddr, String> {
        let text = string(value)?;
        // The usual name for a loopback address is understood.
        let text = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        let address = text.parse();
        address.map_err(|_| format!("{} is no address", quoted(&text)))
    }

    fn show(value: &SocketAddr) -> Option<String> {
        Some(quoted(&value.to_string()))
    }
}
