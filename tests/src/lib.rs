//! What the black-box tests stand on: a server that plays scripts of faults, real web servers on free ports, a
//! directory tree full of awkward names, the program itself, and the few checks that every test repeats. Nothing here knows how the
//! engine works inside.

pub mod alone;
pub mod clients;
pub mod dns;
pub mod process;
pub mod program;
pub mod script;
pub mod servers;
pub mod tls;
pub mod tree;
