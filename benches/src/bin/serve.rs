//! See [`benches::serve`].

fn main() -> std::process::ExitCode {
    benches::tool::main("serve")
}
