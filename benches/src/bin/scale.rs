//! See [`benches::scale`].

fn main() -> std::process::ExitCode {
    benches::tool::main("scale")
}
