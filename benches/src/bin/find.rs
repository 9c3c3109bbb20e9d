//! See [`benches::find`].

fn main() -> std::process::ExitCode {
    benches::tool::main("find")
}
