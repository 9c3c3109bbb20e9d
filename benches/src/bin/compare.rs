//! See [`benches::compare`].

fn main() -> std::process::ExitCode {
    benches::tool::main("compare")
}
