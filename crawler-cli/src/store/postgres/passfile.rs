//! Files of passwords: `~/.pgpass`.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use postgres::Config;
use postgres::config::Host;

/// Sets the password that the file has for the first host of the address. A file that others may read is ignored, with a
/// warning, as libpq does.
pub(super) fn fill(config: &mut Config, path: Option<&Path>) {
    let usual = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
    let Some(path) = path.map(Path::to_owned).or_else(usual) else {
        return;
    };
    let Ok(file) = fs::metadata(&path) else {
        return;
    };
    if file.permissions().mode() & 0o077 != 0 {
        let path = path.display();
        tracing::warn!("{path} is ignored: others may read the passwords; change its mode to 0600");
        return;
    }
    let Ok(text) = fs::read_to_string(&path) else {
        tracing::warn!("{} is ignored: it cannot be read as text", path.display());
        return;
    };
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    if let Some(password) = find(&text, [&host, &port, database, user]) {
        config.password(password);
    }
}

/// The password of the first line that fits.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = fields(line).into_iter();
            let fits = wanted.iter().all(|wanted| {
                let field = fields.next();
                field.is_some_and(|(text, is_plain)| text == *wanted || is_plain && text == "*")
            });
            fits.then(|| fields.next()).flatten().map(|(text, _)| text)
        })
}

/// The fields of a line, and whether each is as it was written: `\:` is a colon and `\\` a backslash. What follows the
/// fourth colon is the password.
fn fields(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), true)];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let is_last = fields.len() == 5;
        let Some((text, is_plain)) = fields.last_mut() else {
            break;
        };
        match char {
            '\\' => {
                *is_plain = false;
                text.extend(chars.next());
            }
            ':' if !is_last => fields.push((String::new(), true)),
            char => text.push(char),
        }
    }
    fields
}
