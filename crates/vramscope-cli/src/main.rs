//! The program `vramscope`: what holds GPU memory, from PyTorch memory snapshots, in a terminal and
//! in scripts.
//!
//! Every command reads files through vramscope-report, gets a value from one of its reports, and
//! prints it as text for people or as JSON for programs (docs/cli.md); nothing is computed here.

#![expect(clippy::print_stderr, reason = "a program says on standard error what went wrong")]

mod arguments;
mod commands;
mod output;
mod paths;
mod read;
mod serve;

use arguments::{Arguments, Command};
use clap::Parser as _;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
enum Failure {
    /// The command line asks for something that is not there.
    Usage(String),
    /// The output could not be written, or a folder not be listed.
    Io(std::io::Error),
    /// An input could not be read; it was said already.
    Input,
    /// What `--fail-on` asks holds; it was said already.
    Check,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let wrong = error.use_stderr();
            // Where the message itself cannot be written there is nobody left to tell.
            drop(error.print());
            return if wrong { ExitCode::from(64) } else { ExitCode::SUCCESS };
        }
    };
    let result = match arguments.command {
        Command::Summary(a) => commands::summary::run(&a),
        Command::Peak(a) => commands::peak::run(&a),
        Command::State(a) => commands::state::run(&a),
        Command::Flame(a) => commands::flame::run(&a),
        Command::Blocks(a) => commands::blocks::run(&a),
        Command::Segments(a) => commands::segments::run(&a),
        Command::Anomalies(a) => commands::anomalies::run(&a),
        Command::Diff(a) => commands::diff::run(&a),
        Command::Info(a) => commands::info::run(&a),
        Command::Export(a) => commands::export::run(&a),
        Command::Serve(a) => serve::run(&a),
        Command::Completions { shell } => commands::completions(shell),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, as `head` has.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Io(error)) => {
            eprintln!("vramscope: {error}");
            ExitCode::from(2)
        }
        Err(Failure::Input) => ExitCode::from(2),
        Err(Failure::Check) => ExitCode::from(1),
        Err(Failure::Usage(message)) => {
            eprintln!("vramscope: {message}");
            ExitCode::from(64)
        }
    }
}
