//! The project's one task runner: `cargo xtask dev|build|examples|types|gen|tidy|size|cost|test`.
//!
//! Nothing here is needed by a user of the product. Every step of the continuous integration is a
//! command that a developer can run; `cargo xtask test` is all of them in order.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to the person who runs it"
)]

mod cmd;
mod cost;
mod dev;
mod examples;
mod files;
mod generate;
mod install;
mod repo;
mod site;
mod size;
mod test;
mod threads;
mod tidy;
mod wasm;

use clap::{Parser, Subcommand};
use repo::Repo;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the vramscope repository")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing, build, serve the page on this machine and rebuild on change
    Dev {
        /// The first port to try
        #[arg(long, default_value_t = 5173)]
        port: u16,
        /// Stop when the page has been served once
        #[arg(long, hide = true)]
        once: bool,
    },
    /// Build the site into web/site/dist
    Build,
    /// Pack the npm package and build the apps of web/examples with it, into target/
    Examples,
    /// Write the generated files: the TypeScript types of the worker protocol
    Types,
    /// Write recordings of any size, for measurements
    Gen(generate::Options),
    /// Check what no compiler checks: who depends on whom, unsafe code, lengths of files, the share
    /// of TypeScript
    Tidy,
    /// Sizes of the built site, against its budget
    Size,
    /// What the workers' modules do with files, counted, against bench/cost.json
    Cost {
        /// Write bench/cost.json instead
        #[arg(long)]
        update: bool,
    },
    /// Everything that the continuous integration checks
    Test {
        /// Run only these steps, in the order of the whole; without any, all
        steps: Vec<String>,
        /// Print the names of the steps and stop
        #[arg(long)]
        list: bool,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = Repo::find().and_then(|repo| match args.task {
        Task::Dev { port, once } => dev::run(&repo, port, once),
        Task::Build => site::build(&repo),
        Task::Examples => examples::run(&repo),
        Task::Types => site::types(&repo),
        Task::Gen(options) => generate::run(&repo, &options),
        Task::Tidy => tidy::run(&repo),
        Task::Size => size::run(&repo),
        Task::Cost { update } => cost::run(&repo, update),
        Task::Test { list: true, .. } => {
            test::list();
            Ok(())
        }
        Task::Test { steps, .. } => test::run(&repo, &steps),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
