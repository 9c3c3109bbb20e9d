//! See [`benches::limit`].

fn main() -> std::process::ExitCode {
    benches::tool::main("limit")
}
