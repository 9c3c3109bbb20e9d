//! See [`benches::load`].

fn main() -> std::process::ExitCode {
    benches::tool::main("load")
}
