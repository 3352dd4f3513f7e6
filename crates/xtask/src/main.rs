//! The task runner of the repository: `cargo xtask --help` lists the tasks.
//!
//! Every step of the continuous integration is a command that a developer can run.
//! `cargo xtask test` runs them all in order. No user of the product needs this crate.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod allocator;
mod cmd;
mod cost;
mod dev;
mod dry;
mod examples;
mod extension;
mod files;
mod generate;
mod install;
mod machine;
mod notices;
mod python;
mod release;
mod repo;
mod reproducible;
mod rooms;
mod site;
mod size;
mod sweep;
mod test;
mod threads;
mod tidy;
mod wasm;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use repo::Repo;
use site::Site;
use std::process::ExitCode;
use test::Selection;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the vramscope repository")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install missing packages, build, serve the page on this machine and rebuild on change
    Dev {
        /// The first port to try
        #[arg(long, default_value_t = 5173)]
        port: u16,
        /// Stop after the page has been served once
        #[arg(long, hide = true)]
        once: bool,
    },
    /// Build the site into web/site/dist
    Build {
        /// Compile in a fraction of the time, to larger and slower modules, without threads
        #[arg(long)]
        fast: bool,
        /// Leave out the optional module with threads, as the gate does
        #[arg(long, conflicts_with = "fast")]
        plain: bool,
    },
    /// Pack the npm package and build the apps of web/examples with it, into target/
    Examples,
    /// Generate the TypeScript types of the worker protocol
    Types,
    /// Write the outputs that documents show, and the reference that the site makes pages of
    Docs,
    /// Write synthetic recordings of any size
    Gen(generate::Options),
    /// Write the snapshot that the page's worker reads before the first file
    WarmUp {
        /// Blocks that the trace allocates
        #[arg(long, default_value_t = 200)]
        blocks: u32,
    },
    /// Halve and double each constant of the inference, and count which verdicts change
    Sweep(sweep::Options),
    /// Write `THIRD_PARTY.txt`, the licenses of the packages that ship
    Notices,
    /// Make what a tag publishes, and publish nothing
    Release(release::Options),
    /// Check crate edges, unsafe code, file lengths, line widths, links, paths and versions
    Tidy,
    /// Compare the download size of the built site with its budget
    Size,
    /// Count instructions and memory of the built wasm, and compare them with bench/cost.json
    Cost {
        /// Write bench/cost.json instead
        #[arg(long)]
        update: bool,
    },
    /// Run the checks of the continuous integration
    Test {
        /// Run only these steps, in the order of the gate
        steps: Vec<String>,
        /// Run only the steps that need neither a browser nor the built site, and of them only
        /// those that depend on what has changed since the branch `main` of the remote
        #[arg(long, conflicts_with = "steps")]
        quick: bool,
        /// Run the parts that take long, which CONTRIBUTING.md describes, then the steps
        ///
        /// `--long=PART` runs only one of them, and no step.
        #[arg(
            long, value_name = "PART", num_args = 0..=1, require_equals = true,
            default_missing_value = ALL, value_parser = long_parts()
        )]
        long: Option<String>,
        /// Print the names of the steps and stop
        #[arg(long)]
        list: bool,
    },
}

/// All parts of `--long`.
const ALL: &str = "all";

/// A part of `--long`, by its name.
type Part = (&'static str, fn(&Repo) -> Result<()>);

/// The parts of `--long`, in order.
const LONG: [Part; 14] = [
    ("properties", test::run_long),
    ("allocator", allocator::differential),
    ("recorder", python::long),
    ("holders", python::long_holders),
    ("dry-run", dry::long),
    ("twins", python::twins),
    ("rooms", rooms::run),
    ("reproducible", reproducible::run),
    ("shipped", release::long),
    ("trackers", python::trackers),
    ("fleet", python::fleet),
    ("jupyter", test::jupyter),
    ("vscode", extension::long),
    ("threads", test::threads),
];

fn long_parts() -> PossibleValuesParser {
    LONG.iter().map(|part| part.0).chain([ALL]).into()
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = Repo::find().and_then(|repo| match args.task {
        Task::Dev { port, once } => dev::run(&repo, port, once),
        Task::Build { fast: true, .. } => site::build(&repo, Site::Fast),
        Task::Build { plain: true, .. } => site::build(&repo, Site::Plain),
        Task::Build { .. } => site::build(&repo, Site::Whole),
        Task::Examples => examples::run(&repo),
        Task::Types => site::types(&repo),
        Task::Docs => python::docs(&repo),
        Task::Gen(options) => generate::run(&repo, &options),
        Task::WarmUp { blocks } => generate::warm_up(&repo, blocks),
        Task::Sweep(options) => sweep::run(&repo, &options),
        Task::Notices => notices::write(&repo),
        Task::Release(options) => release::run(&repo, &options),
        Task::Tidy => tidy::run(&repo),
        Task::Size => size::run(&repo),
        Task::Cost { update } => cost::run(&repo, update),
        Task::Test { list: true, .. } => {
            test::list();
            Ok(())
        }
        Task::Test { steps, quick, long, .. } => {
            let selection = match (quick, steps.is_empty()) {
                (true, _) => Selection::Quick,
                (false, true) => Selection::All,
                (false, false) => Selection::Named(steps),
            };
            let long = long.as_deref();
            for (name, run) in LONG {
                if long == Some(ALL) || long == Some(name) {
                    run(&repo)?;
                }
            }
            if long.is_none_or(|part| part == ALL) { test::run(&repo, &selection) } else { Ok(()) }
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
