//! See [`benches::memory`].

fn main() -> std::process::ExitCode {
    benches::tool::main("memory")
}
