//! Halves and doubles each numeric constant of the inference, and counts which verdicts change.
//!
//! A copy of the tree turns each constant into a function that reads the trial from the
//! environment, so one build serves all trials. A constant that stands where no function can (the
//! length of an array, a pattern) stays as it is. A trial runs on recordings that read its
//! constant.

mod source;

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use source::Constant;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The code whose constants are swept.
const CRATES: [&str; 2] = ["crates/vramscope-inference/src/", "crates/vramscope-report/src/"];

/// The commands whose verdicts are compared, with their verdicts: a list of the answer and what of
/// it counts.
const COMMANDS: [(&str, &str, &[&str]); 3] = [
    ("diagnose", "findings", &["kind", "severity", "title"]),
    ("peak", "stacks", &["category", "bytes"]),
    ("what-if", "scenarios", &["change", "active_peak", "reserved_peak", "outcome", "declined"]),
];

#[derive(Args)]
pub(crate) struct Options {
    /// A folder with more recordings than those of `test_data`
    folder: Option<PathBuf>,
    /// Try a constant on at most N of the recordings that read it
    #[arg(long, value_name = "N", default_value_t = 8)]
    sample: usize,
    /// Leave out larger recordings, in KiB of the file
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    largest: u64,
    /// Sweep only constants of files whose path contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The table to write [default: `sweep.md` in the target folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A recording and a command.
type Run = (usize, usize);

pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let tree = repo.target.join("sweep");
    let (constants, program) = build(repo, &tree, &options.only)?;
    let recordings = recordings(repo, options)?;
    let runs: Vec<Run> = (0..recordings.len() * COMMANDS.len())
        .map(|run| (run / COMMANDS.len(), run % COMMANDS.len()))
        .collect();
    let base = each(&runs, |&(recording, command)| {
        let log = tree.join(format!("log-{recording}-{command}"));
        std::fs::write(&log, "")?;
        let verdict = verdict(&program, &recordings[recording], command, ("SWEEP_LOG", &log))?;
        let read: Result<Vec<usize>, _> =
            std::fs::read_to_string(&log)?.lines().map(str::parse).collect();
        std::fs::remove_file(&log)?;
        Ok((verdict, read?))
    })?;
    // Runs that read a constant, by the constant and the command.
    let mut readers: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, (_, read)) in base.iter().enumerate() {
        let key = |&constant: &usize| (constant, runs[at].1);
        read.iter().map(key).for_each(|key| readers.entry(key).or_default().push(at));
    }
    let trials: Vec<(usize, bool, usize)> = readers
        .iter()
        .flat_map(|(&(constant, _), of)| {
            let of = of.iter().step_by(of.len().div_ceil(options.sample.max(1)));
            of.flat_map(move |&run| [(constant, true, run), (constant, false, run)])
        })
        .collect();
    eprintln!("{} constants, {} recordings", constants.len(), recordings.len());
    let changed = each(&trials, |&(constant, is_half, run)| {
        let trial = format!("{constant} {}", if is_half { "half" } else { "double" });
        let (recording, command) = runs[run];
        let set = ("SWEEP_TRIAL", Path::new(&trial));
        Ok(verdict(&program, &recordings[recording], command, set)? != base[run].0)
    })?;
    // Runs and changes, by constant, command and whether it is halved.
    let mut counts: BTreeMap<(usize, usize, bool), [u32; 2]> = BTreeMap::new();
    for (&(constant, is_half, run), changed) in trials.iter().zip(&changed) {
        let [all, changes] = counts.entry((constant, runs[run].1, is_half)).or_default();
        *all += 1;
        *changes += u32::from(*changed);
    }
    let out = options.out.clone().unwrap_or_else(|| repo.target.join("sweep.md"));
    std::fs::write(&out, table(&constants, &counts)?)?;
    println!("{}", out.display());
    Ok(())
}

/// The results of `job` for all items, in their order, on all processors.
fn each<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = job(item);
            if at % 1000 == 999 {
                eprintln!("{} of {}", at + 1, items.len());
            }
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(at, result);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_values().collect()
}

/// The recordings: each file that is no copy of another one and not damaged on purpose.
fn recordings(repo: &Repo, options: &Options) -> Result<Vec<PathBuf>> {
    let mut found: BTreeMap<Vec<u8>, PathBuf> = BTreeMap::new();
    for folder in options.folder.iter().chain([&repo.path("test_data")]) {
        for path in files::below(folder)? {
            let name = path.to_string_lossy();
            let is_recording = name.ends_with(".pickle") || name.ends_with(".pickle.gz");
            let is_odd = ["damaged", "hostile", "fuzz"].iter().any(|part| name.contains(part));
            if is_recording && !is_odd && path.metadata()?.len() >> 10 <= options.largest {
                found.insert(std::fs::read(&path)?, path);
            }
        }
    }
    let mut found: Vec<PathBuf> = found.into_values().collect();
    found.sort();
    Ok(found)
}

/// Builds the program with constants that can change. Returns them, and the program.
fn build(repo: &Repo, tree: &Path, only: &str) -> Result<(Vec<Constant>, PathBuf)> {
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for name in files::tracked(repo)? {
        let is_rust = files::has_extension(Path::new(&name), &["rs"]);
        if is_rust && CRATES.iter().any(|folder| name.starts_with(folder)) {
            sources.insert(name.clone(), std::fs::read_to_string(repo.path(&name))?);
        } else if !["web/", "test_data/", "docs/"].iter().any(|part| name.starts_with(part)) {
            files::update(&tree.join(&name), &std::fs::read(repo.path(&name))?)?;
        }
    }
    let chosen = sources.iter().filter(|source| source.0.contains(only));
    let constants: Vec<Constant> =
        chosen.flat_map(|(name, code)| source::constants(name, code)).collect();
    // Indexes of constants that cannot be functions.
    let mut fixed: BTreeSet<usize> = BTreeSet::new();
    loop {
        for folder in CRATES {
            files::update(&tree.join(folder).join("sweep.rs"), include_bytes!("sweep/get.rs"))?;
            let mut swept: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
            for (i, c) in constants.iter().enumerate().filter(|(i, _)| !fixed.contains(i)) {
                if c.file.starts_with(folder) {
                    swept.entry(&c.name).or_default().insert(&c.file, i);
                }
            }
            for (name, code) in sources.iter().filter(|source| source.0.starts_with(folder)) {
                let mut new = source::rewritten(name, code, &swept);
                if *name == format!("{folder}lib.rs") {
                    new.push_str("mod sweep;\n");
                }
                files::update(&tree.join(name), new.as_bytes())?;
            }
        }
        let mut build = cmd::cargo(&["build", "--release", "--message-format=json"], tree);
        for (name, value) in [("LTO", "off"), ("OPT_LEVEL", "1"), ("CODEGEN_UNITS", "64")] {
            build.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        build.env("CARGO_INCREMENTAL", "1").args(["-p", "vramscope-cli"]);
        let output = build.output().context("cannot start cargo")?;
        if output.status.success() {
            break;
        }
        let before = fixed.len();
        for (file, words) in errors(&String::from_utf8_lossy(&output.stdout), tree)? {
            let declares = |name| constants.iter().any(|c| c.file == file && c.name == name);
            fixed.extend((0..).zip(&constants).filter_map(|(i, c)| {
                let is_here = c.file == file || !declares(&*c.name);
                (words.contains(&c.name) && is_here).then_some(i)
            }));
        }
        if fixed.len() == before {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    for i in &fixed {
        eprintln!("not swept: {} in {}", constants[*i].name, constants[*i].file);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree.join("target"), PathBuf::from);
    let program = tree.join("program");
    std::fs::copy(target.join("release/vramscope"), &program)?;
    Ok((constants, program))
}

/// The words of the lines that do not compile, by file.
fn errors(messages: &str, tree: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        let spans = message["message"]["spans"].as_array();
        for span in spans.into_iter().flatten().filter(|_| message["message"]["level"] == "error") {
            let Some(file) = span["file_name"].as_str() else { continue };
            let line = |end: &str| span[end].as_u64().unwrap_or(1) as usize;
            let code = std::fs::read_to_string(tree.join(file))?;
            let (first, last) = (line("line_start"), line("line_end"));
            for line in code.lines().skip(first - 1).take(last + 1 - first) {
                let words = source::words(line).map(|word| word.1.to_owned());
                found.entry(file.to_owned()).or_default().extend(words);
            }
        }
    }
    Ok(found)
}

/// What counts of a command's answer about a recording, or why it has none.
fn verdict(program: &Path, path: &Path, command: usize, set: (&str, &Path)) -> Result<String> {
    let (name, list, keys) = COMMANDS[command];
    // A constant can end a loop.
    let mut run = Command::new("timeout");
    run.arg("60").arg(program).arg(name).arg(path).args(["--format", "json"]).env(set.0, set.1);
    let output = run.output().context("cannot start the program")?;
    let Ok(json) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Ok(format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr)));
    };
    let rows = json[list].as_array().into_iter().flatten();
    let mut rows: Vec<Vec<String>> =
        rows.map(|row| keys.iter().map(|key| row[key].to_string()).collect()).collect();
    rows.sort();
    Ok(format!("{rows:?}"))
}

/// The table: constants by file, with the verdicts that change when it is halved and doubled.
fn table(
    constants: &[Constant],
    counts: &BTreeMap<(usize, usize, bool), [u32; 2]>,
) -> Result<String> {
    let mut out =
        "Verdicts that change when a constant is halved, and doubled, of those that read it.\n\n\
         | file | constant | value | diagnose | peak | what-if |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (i, constant) in constants.iter().enumerate() {
        write!(out, "| {} | {} | {}", constant.file, constant.name, constant.value)?;
        for command in 0..COMMANDS.len() {
            let of = |is_half| counts.get(&(i, command, is_half)).copied().unwrap_or_default();
            let ([all, half], [_, double]) = (of(true), of(false));
            write!(out, " | {half}, {double} of {all}")?;
        }
        out.push_str(" |\n");
    }
    Ok(out)
}
