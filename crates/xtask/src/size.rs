//! What a visitor downloads.

use crate::{files, repo::Repo};
use anyhow::{Context, Result, bail};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// All wasm, JavaScript and CSS that the first paint needs, gzipped.
const BUDGET: usize = 350_000;

/// Prints the sizes of the built site's code; fails over the budget.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let dist = repo.dist();
    if !dist.is_dir() {
        bail!("{} is not there: run `cargo xtask build` first", dist.display());
    }
    println!("{:>10} {:>10}  file", "raw", "gzip");
    let (mut raw_sum, mut gzip_sum) = (0, 0);
    for path in files::below(&dist)? {
        if !files::has_extension(&path, &["wasm", "js", "css"]) {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let gzip = gzip_len(&bytes)?;
        println!("{:>10} {:>10}  {}", bytes.len(), gzip, path.strip_prefix(&dist)?.display());
        raw_sum += bytes.len();
        gzip_sum += gzip;
    }
    println!("{raw_sum:>10} {gzip_sum:>10}  in all, of {BUDGET} bytes gzipped");
    if gzip_sum == 0 {
        bail!("{} holds no code", dist.display());
    }
    if gzip_sum > BUDGET {
        bail!("the page's code is {} bytes over its budget", gzip_sum - BUDGET);
    }
    Ok(())
}

fn gzip_len(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
