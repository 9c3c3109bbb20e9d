//! See [`benches::links`].

fn main() -> std::process::ExitCode {
    benches::tool::main("links")
}
