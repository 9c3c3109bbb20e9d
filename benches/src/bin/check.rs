//! See [`benches::check`].

fn main() -> std::process::ExitCode {
    benches::tool::main("check")
}
