//! What a visitor downloads.

use crate::{files, repo::Repo};
use anyhow::{Context, Result, bail};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// All wasm, JavaScript and CSS that the first picture needs, gzipped.
const BUDGET: usize = 350_000;

/// What is fetched after the first picture, by the start of its name: the module that answers all
/// views with its glue, and the views themselves; what makes the page work without a network; what
/// listens to a page around this one, or reads addresses, if there are any; and the page about
/// recording. A browser test sees that the page does not ask for these earlier.
const LATER: [&str; 6] =
    ["vramscope_worker_views", "workspace", "sw.js", "door", "open-", "record-"];

/// The folder of what is fetched for a large file only, where the page is isolated from other
/// origins.
const THREADS: &str = "threads";

/// Prints the sizes of the built site's code; fails over the budget.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let dist = repo.dist();
    if !dist.is_dir() {
        bail!("{} is not there: run `cargo xtask build` first", dist.display());
    }
    println!("{:>10} {:>10}  file", "raw", "gzip");
    let (mut raw_sum, mut gzip_sum, mut later_sum, mut threads_sum) = (0, 0, 0, 0);
    for path in files::below(&dist)? {
        // Another copy of the same, for hosts that cannot send headers.
        let is_copy = path.starts_with(dist.join("isolated"));
        if is_copy || !files::has_extension(&path, &["wasm", "js", "css"]) {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let gzip = gzip_len(&bytes)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_later = LATER.iter().any(|start| name.starts_with(start));
        let path = path.strip_prefix(&dist)?;
        let note = if path.starts_with(THREADS) {
            threads_sum += gzip;
            " (for a large file, with threads)"
        } else if is_later {
            later_sum += gzip;
            " (after the first picture)"
        } else {
            raw_sum += bytes.len();
            gzip_sum += gzip;
            ""
        };
        println!("{:>10} {gzip:>10}  {}{note}", bytes.len(), path.display());
    }
    println!("{raw_sum:>10} {gzip_sum:>10}  for the first picture, of {BUDGET} bytes gzipped");
    println!("{:>10} {later_sum:>10}  after it", "");
    println!(
        "{:>10} {threads_sum:>10}  in place of part of that, for a large file, with threads",
        ""
    );
    if gzip_sum == 0 {
        bail!("{} holds no code", dist.display());
    }
    if later_sum == 0 {
        bail!("nothing is named {}: what is fetched later cannot be told", LATER.join(" or "));
    }
    if gzip_sum > BUDGET {
        bail!("the code for the first picture is {} bytes over its budget", gzip_sum - BUDGET);
    }
    Ok(())
}

fn gzip_len(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
