//! Writes synthetic recordings of any size, and the snapshot of the page's warm-up.

use crate::repo::Repo;
use anyhow::{Context, Result};
use clap::Args;
use flate2::{Compression, write::DeflateEncoder};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use vramscope_testgen::Generator;

/// The snapshot that the page's worker embeds.
const WARM_UP: &str = "crates/vramscope-session/src/warm-up.pickle.deflate";

#[derive(Args)]
pub(crate) struct Options {
    /// Events of each rank's trace
    #[arg(long, value_name = "N")]
    events: u64,
    /// Number of ranks, one file each
    #[arg(
        long, value_name = "R", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=100_000)
    )]
    ranks: u64,
    /// Blocks that are live at the end, roughly: from 100 to a fourth of the events
    #[arg(long, value_name = "L", default_value_t = 10_000)]
    live: u64,
    /// Folder for `rankR_memory_snapshot.pickle` [default: `gen` in the target folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Frames of a call stack, on average
    #[arg(
        long, value_name = "F", default_value_t = 32,
        value_parser = clap::value_parser!(u16).range(4..=500)
    )]
    frames: u16,
}

impl Options {
    /// One rank, with the defaults of the command line.
    pub(crate) fn new(events: u64, live: u64, out: PathBuf) -> Self {
        Self { events, ranks: 1, live, out: Some(out), seed: 1, frames: 32 }
    }
}

/// Writes one file per rank.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let Options { events, ranks, live, seed, frames, .. } = *options;
    let generator = Generator::new(&vramscope_testgen::Options { events, live, seed, frames })
        .context("--events and --live")?;
    let folder = options.out.clone().unwrap_or_else(|| repo.target.join("gen"));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for rank in 0..ranks {
        let path = folder.join(format!("rank{rank}_memory_snapshot.pickle"));
        let started = Instant::now();
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        let written =
            generator.write(rank, file).with_context(|| format!("writing {}", path.display()))?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{}: {} bytes, {} events, {} steps, {} live blocks in {} segments; {seconds:.1} s, \
             {:.0} MB/s",
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

/// Writes the snapshot of the warm-up, which is committed.
pub(crate) fn warm_up(repo: &Repo, blocks: u32) -> Result<()> {
    let bytes = vramscope_testgen::warm_up(blocks);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    let packed = encoder.finish()?;
    let path = repo.path(WARM_UP);
    std::fs::write(&path, &packed).with_context(|| format!("writing {}", path.display()))?;
    println!("{WARM_UP}: {} bytes, {} packed", bytes.len(), packed.len());
    Ok(())
}
