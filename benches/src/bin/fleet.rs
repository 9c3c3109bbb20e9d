//! See [`benches::fleet`].

fn main() -> std::process::ExitCode {
    benches::tool::main("fleet")
}
