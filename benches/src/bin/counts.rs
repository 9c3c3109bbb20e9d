//! See [`benches::counts`].

fn main() -> std::process::ExitCode {
    benches::tool::main("counts")
}
