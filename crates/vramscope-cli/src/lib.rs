//! The program `vramscope`: reports on PyTorch memory snapshots, for the terminal and for scripts.
//!
//! Every command reads files through vramscope-report, takes a value from one of its reports, and
//! prints it as text or JSON (docs/cli.md). This crate computes no numbers. It is a library, since
//! the Python package has the program within its module.

#![expect(clippy::print_stderr, reason = "the program reports failures on standard error")]

mod arguments;
mod beside;
mod commands;
pub mod dataset;
pub mod input;
mod mcp;
mod memory;
mod no_memory;
mod out_file;
mod output;
mod paths;
mod printable;
mod read;
pub mod report;
mod row_per_line;
mod serve;
mod sources;
mod terminal;

pub use serve::page::{Viewer, viewer};

use arguments::{Arguments, Command};
use clap::Parser as _;
use std::ffi::OsString;

/// Why a command failed.
enum Failure {
    /// The command line is wrong, or names a device, snapshot or event that does not exist.
    Usage(String),
    /// A snapshot is whole and has no memory: that is the answer.
    NoMemory {
        /// The file's path.
        path: String,
    },
    /// Writing the output or listing a folder failed.
    Io(std::io::Error),
    /// An input could not be read. The command has printed the reason.
    Input,
    /// A `--fail-on` expression holds. The command has printed it.
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

/// Ends the process with code 70 (`EX_SOFTWARE`) when a thread panics, which is a bug. Where panics
/// abort, no code runs after this hook.
fn end_after_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        output::complain("the message above is a bug of vramscope. Please report it");
        std::process::exit(70);
    }));
}

/// Runs the program. The first argument is its name. Returns the exit code:
/// 70 (`EX_SOFTWARE`) after a panic, which is a bug.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    mcp::end_with_server();
    end_after_panics();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let program = arguments.first().cloned().unwrap_or_default();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_wrong_usage = error.use_stderr();
            // A failed write of the message cannot be reported anywhere.
            drop(error.print());
            return if is_wrong_usage { 64 } else { 0 };
        }
    };
    let format = arguments.command.format();
    let result = match arguments.command {
        Command::Summary(a) => commands::summary::run(&a),
        Command::Peak(a) => commands::peak::run(&a),
        Command::Phases(a) => commands::phases::run(&a),
        Command::Steps(a) => commands::steps::run(&a),
        Command::Shapes(a) => commands::shapes::run(&a),
        Command::Modules(a) => commands::modules::run(&a),
        Command::Annotate(a) => commands::annotate::run(&a),
        Command::State(a) => commands::state::run(&a),
        Command::Flame(a) => commands::flame::run(&a),
        Command::Blocks(a) => commands::blocks::run(&a),
        Command::Segments(a) => commands::segments::run(&a),
        Command::Events(a) => commands::events::run(&a),
        Command::Diagnose(a) => commands::diagnose::run(&a),
        Command::Matrix(a) => commands::matrix::run(&a),
        Command::Index(a) => commands::index::run(&a),
        Command::Series(a) => commands::series::run(&a),
        Command::WhatIf(a) => commands::what_if::run(&a),
        Command::Diff(a) => commands::diff::run(&a),
        Command::Info(a) => commands::info::run(&a),
        Command::Show(a) => commands::show::run(&a),
        Command::Export(a) => commands::export::run(&a),
        Command::Serve(a) => serve::run(&a),
        Command::Schema { command } => commands::schema::run(command),
        Command::Mcp(a) => mcp::run(&program, &a),
        Command::Completions { shell } => commands::completions(shell),
    };
    let answered = match result {
        Err(Failure::NoMemory { path }) => no_memory::print(path, format),
        other => other,
    };
    match answered {
        // The latter is answered.
        Ok(()) | Err(Failure::NoMemory { .. }) => 0,
        // The reader closed the pipe, as `head` does.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(Failure::Io(error)) => {
            output::complain(error);
            2
        }
        Err(Failure::Input) => 2,
        Err(Failure::Check) => 1,
        Err(Failure::Usage(message)) => {
            output::complain(message);
            64
        }
    }
}
