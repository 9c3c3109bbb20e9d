//! See [`benches::hosts`].

fn main() -> std::process::ExitCode {
    benches::tool::main("hosts")
}
