//! The program `vramscope`.

use std::process::ExitCode;

fn main() -> ExitCode {
    vramscope_cli::run(std::env::args_os()).into()
}
