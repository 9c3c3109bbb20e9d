//! Asks for the password of `-u name` and `-U name`, which have none.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt as _;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Adds the password to a name without one. Asks on the terminal, without echo; without a terminal, the password is
/// the first line of stdin, as in curl.
pub(super) fn complete(kind: &str, user: &mut Option<OsString>) {
    let Some(name) = user.as_mut() else { return };
    let bytes = name.as_encoded_bytes();
    if bytes.contains(&b':') {
        return;
    }
    // As in curl, there is nothing to ask about `;options` without a name.
    if bytes.starts_with(b";") {
        name.push(":");
        return;
    }
    let shown = crate::terminal::neutralise(&name.to_string_lossy()).into_owned();
    let prompt = format!("Enter {kind} password for user '{shown}':");
    let password = match File::open("/dev/tty") {
        Ok(terminal) => ask(&prompt, &terminal),
        Err(_) => ask(&prompt, &io::stdin()),
    };
    name.push(":");
    name.push(password);
}

/// Shows the prompt and reads one line from `source`, without echo if this is a terminal.
fn ask(prompt: &str, source: &impl AsFd) -> OsString {
    let before = tcgetattr(source).ok();
    let silent = before.clone().is_some_and(|mut modes| {
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(source, OptionalActions::Now, &modes).is_ok()
    });
    // Without stderr, nobody sees a prompt.
    let _ = io::stderr().lock().write_all(prompt.as_bytes());
    let line = line_of(source);
    let _ = io::stderr().lock().write_all(b"\n");
    if let Some(before) = before.filter(|_| silent) {
        let _ = tcsetattr(source, OptionalActions::Now, &before);
    }
    OsString::from_vec(line)
}

/// The first line, without its end. Nothing after the line is read: stdin may have more for `-d @-`. A line that cannot
/// be read is empty.
fn line_of(source: &impl AsFd) -> Vec<u8> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST {
        match rustix::io::read(source, &mut byte) {
            Ok(1) if byte[0] != b'\n' => line.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    line
}

/// Bytes in a password, as in curl.
const LONGEST: usize = 2047;
