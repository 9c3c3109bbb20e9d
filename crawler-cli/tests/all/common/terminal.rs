//! A pseudo-terminal for the program, and the screen that its user would see.

use std::fs::File;
use std::io::Read as _;

/// A terminal of 60 columns and 24 rows: the end to read from, and the end for a program.
pub(crate) fn pseudo_terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    // No program that another test starts meanwhile gets it.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let mut options = File::options();
    let terminal = options
        .read(true)
        .write(true)
        .open(name.to_str().expect("a path"));
    let size = rustix::termios::Winsize {
        ws_row: 24,
        ws_col: 60,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&master, size).expect("a size");
    (master.into(), terminal.expect("opens"))
}

/// Reads what a program writes to a terminal until no writer is left. Passes the screen to `seen` after each read.
pub(crate) fn watch(mut master: File, mut seen: impl FnMut(&vt100::Screen)) -> vt100::Parser {
    let mut screen = vt100::Parser::new(24, 60, 1000);
    let mut bytes = [0; 4096];
    // At the end of a terminal, reading returns an error.
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        screen.process(&bytes[..n]);
        seen(screen.screen());
    }
    screen
}

/// The rows of the screen, without trailing blanks.
pub(crate) fn rows(screen: &vt100::Screen) -> String {
    let rows: Vec<_> = screen
        .rows(0, 60)
        .map(|row| row.trim_end().to_owned())
        .collect();
    rows.join("\n")
}
