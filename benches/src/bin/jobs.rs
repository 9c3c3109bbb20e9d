//! See [`benches::jobs`].

fn main() -> std::process::ExitCode {
    benches::tool::main("jobs")
}
