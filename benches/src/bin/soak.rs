//! See [`benches::soak`].

fn main() -> std::process::ExitCode {
    benches::tool::main("soak")
}
