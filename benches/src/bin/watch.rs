//! See [`benches::watch`].

fn main() -> std::process::ExitCode {
    benches::tool::main("watch")
}
