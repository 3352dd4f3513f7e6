//! Writes recordings of any size, for measurements.

mod allocator;
mod pickle;
mod program;
mod random;
mod sites;
mod snapshot;
mod stacks;

use crate::repo::Repo;
use anyhow::{Context, Result, ensure};
use clap::Args;
use program::Plan;
use random::Random;
use stacks::Stacks;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Options {
    /// Events of each rank's trace
    #[arg(long, value_name = "N")]
    events: u64,
    /// How many ranks, each a file
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    ranks: u64,
    /// Blocks that are live in the end, roughly: at least 100, and at most a fourth of the events
    #[arg(long, value_name = "L", default_value_t = 10_000)]
    live: u64,
    /// Where to write `rankR_memory_snapshot.pickle`; the target folder's `gen` unless told
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The same seed gives the same files
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Frames of a call stack, on average
    #[arg(long, value_name = "F", default_value_t = 32, value_parser = clap::value_parser!(u16).range(4..=500))]
    frames: u16,
}

impl Options {
    /// One rank, of which everything else is as usual.
    pub(crate) fn of(events: u64, live: u64, out: PathBuf) -> Self {
        Self { events, ranks: 1, live, out: Some(out), seed: 1, frames: 32 }
    }
}

/// One file a rank.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    ensure!(
        options.live >= 100,
        "--live {} is too few: a layer alone has a dozen activations",
        options.live
    );
    ensure!(
        options.events / 4 >= options.live,
        "--events {} is too few to make {} live blocks and train with them: four times as many at least",
        options.events,
        options.live
    );
    let folder = options.out.clone().unwrap_or_else(|| repo.target.join("gen"));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let stacks = Stacks::new(usize::from(options.frames), &mut Random::new(options.seed));
    let plan = Plan::new(options.events, options.live, options.seed);
    for rank in 0..options.ranks {
        let path = folder.join(format!("rank{rank}_memory_snapshot.pickle"));
        let started = Instant::now();
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        let written = snapshot::write(&plan, &stacks, rank, file)
            .with_context(|| format!("writing {}", path.display()))?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{}: {} bytes, {} events, {} steps, {} live blocks in {} segments; {seconds:.1} s, {:.0} MB/s",
            path.display(),
            written.bytes,
            written.events,
            written.steps,
            written.live,
            written.segments,
            written.bytes as f64 / 1e6 / seconds
        );
    }
    Ok(())
}
