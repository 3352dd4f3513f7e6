//! Budgets of what is downloaded, and the sizes of the built site.

use crate::{files, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::path::Path;

/// Bytes, gzipped: the HTML, CSS and JavaScript that the landing page needs for its first paint.
const LANDING_BUDGET: usize = 100_000;
/// Bytes, gzipped: the worker's wasm module, which is fetched while the visitor looks for a file.
/// At 10 Mbit/s that takes 1.2 seconds. The aim is 1.2 MB: a quarter are copies of sorts, of which
/// bench/README.md tells. The answer about a pasted message takes 35 kB, that about a dry run 9 kB.
/// 31 kB are words of claims, which are compiled for speed because their detection is. Eight more
/// claims, the lines of a moment and like passes take 86 kB, growth of passes and two readings of a
/// change 20 kB, the table of levers with the plot beside it 25 kB, five more claims and what lines
/// make 26 kB, the room of a KV cache with its flags and how much longer a step takes 30 kB.
const WORKER_BUDGET: usize = 2_165_000;

/// Bytes of a report in one HTML file, without its text and its snapshots.
const REPORT_BUDGET: usize = 3_275_000;
/// What a report holds: its template as it is, and the others compressed and in base64.
const REPORT: [&str; 4] = ["report.html", "inline.js", WORKER, "vramscope_view_bg"];

const WORKER: &str = "vramscope_worker_bg";
/// Bytes of the Python wheel.
pub(crate) const WHEEL_BUDGET: usize = 14_000_000;
/// Bytes of the archive of the program, with the page.
pub(crate) const PROGRAM_BUDGET: usize = 16_000_000;
/// Bytes of the gallery: pages and recordings as they are.
const GALLERY_BUDGET: u64 = 1_500_000;
const GALLERY: &str = "gallery";
/// Bytes, gzipped, of the documents and the index of their search, which the page keeps for offline
/// use: half are the reference of JSON and its words.
const DOCS_BUDGET: usize = 500_000;
const DOCS: &str = "docs";

/// The folder of the build with threads, which replaces the worker's module for a large file.
const THREADS: &str = "threads";
/// The copy of the site for hosts that cannot send headers.
const COPY: &str = "isolated";

/// Prints the sizes of the built site's code; fails over a budget.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let dist = repo.dist();
    if !dist.is_dir() {
        bail!("{} is missing: run `cargo xtask build` first", dist.display());
    }
    let index = std::fs::read_to_string(dist.join("index.html")).context("reading index.html")?;
    println!("{:>10} {:>10}  file", "raw", "gzip");
    let (mut landing, mut worker, mut other, mut threads, mut report) = (0, 0, 0, 0, 0);
    for path in files::below(&dist)? {
        let name = path.strip_prefix(&dist)?.to_path_buf();
        if name.starts_with(COPY) || !files::has_extension(&path, &["wasm", "js", "css", "html"]) {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let gzip = gzip_len(&bytes)?;
        let (sum, note) = if is_landing(&name, &index) {
            (&mut landing, " (landing page)")
        } else if name.starts_with(THREADS) {
            (&mut threads, " (threads)")
        } else if file_name(&name).starts_with(WORKER) {
            (&mut worker, " (worker)")
        } else {
            (&mut other, "")
        };
        *sum += gzip;
        if !name.starts_with(THREADS)
            && REPORT.iter().any(|part| file_name(&name).starts_with(part))
        {
            let is_template = file_name(&name) == REPORT[0];
            report += if is_template { bytes.len() } else { gzip.div_ceil(3) * 4 };
        }
        println!("{:>10} {gzip:>10}  {}{note}", bytes.len(), name.display());
    }
    println!("\ngzipped bytes:");
    println!("{landing:>10}  landing page, of {LANDING_BUDGET}");
    println!("{worker:>10}  worker module, of {WORKER_BUDGET}");
    println!("{other:>10}  views, the view's module, other pages");
    println!("{threads:>10}  build with threads");
    println!("{report:>10}  a report without snapshots, of {REPORT_BUDGET} (not gzipped)");
    let docs = docs(&dist)?;
    println!("{docs:>10}  the documents with their search, of {DOCS_BUDGET}");
    let gallery = gallery(&dist)?;
    println!("{gallery:>10}  the gallery, of {GALLERY_BUDGET} (not gzipped)");
    ensure!(gallery > 0 && gallery <= GALLERY_BUDGET, "the gallery is absent or over its budget");
    within("documents", docs, DOCS_BUDGET)?;
    within("report", report, REPORT_BUDGET)?;
    within("landing page", landing, LANDING_BUDGET)?;
    within("worker module", worker, WORKER_BUDGET)
}

/// Bytes of the documents, each file gzipped.
fn docs(dist: &Path) -> Result<usize> {
    let files = files::below(&dist.join(DOCS))?;
    files.iter().map(|path| gzip_len(&std::fs::read(path)?)).sum()
}

/// Bytes of the gallery with its recordings.
fn gallery(dist: &Path) -> Result<u64> {
    let files = files::below(&dist.join(GALLERY))?;
    let sizes = files.iter().map(|path| Ok(std::fs::metadata(path)?.len()));
    sizes.sum::<std::io::Result<u64>>().context("measuring the gallery")
}

/// True for the landing page and the scripts and styles that it names. Vite names every statically
/// imported chunk in a `modulepreload` link.
fn is_landing(name: &Path, index: &str) -> bool {
    name == Path::new("index.html")
        || (name.starts_with("assets") && index.contains(file_name(name).as_str()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Fails for nothing, and for more than the budget.
pub(crate) fn within(what: &str, size: usize, budget: usize) -> Result<()> {
    ensure!(size > 0, "the {what} is empty");
    ensure!(size <= budget, "the {what} is {} bytes over its budget", size - budget);
    Ok(())
}

fn gzip_len(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
