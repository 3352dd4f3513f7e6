//! Halves and doubles each numeric constant of the inference, and counts which verdicts change.
//!
//! A copy of the tree turns each constant into a function that reads the trial from the
//! environment, so one build serves all trials. A constant that stands where no function can (the
//! length of an array, a pattern) stays as it is. So do costs of the budget, and constants whose
//! comment gives PyTorch as the source. A trial runs only on the recordings that read its constant.

mod source;

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
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

/// The commands whose verdicts are compared.
const COMMANDS: [&[&str]; 3] = [&["diagnose", "--all"], &["peak"], &["what-if"]];

/// Seconds after which a trial counts as changed: a constant can end a loop.
const SECONDS: &str = "60";

#[derive(Args)]
pub(crate) struct Options {
    /// A folder with more recordings than those of `test_data`
    folder: Option<PathBuf>,
    /// Take one recording of N
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
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

/// A run of the program: the constant and whether it is halved, recording and command.
struct Trial {
    constant: usize,
    is_half: bool,
    recording: usize,
    command: usize,
}

pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let tree = repo.target.join("sweep");
    let (constants, program) = build(repo, &tree, &options.only)?;
    let recordings = recordings(repo, options)?;
    let runs: Vec<(usize, usize)> = (0..recordings.len())
        .flat_map(|recording| (0..COMMANDS.len()).map(move |command| (recording, command)))
        .collect();
    eprintln!("{} constants, {} recordings", constants.len(), recordings.len());
    let read = |(recording, command): &(usize, usize)| -> Result<(String, Vec<usize>)> {
        let log = tree.join(format!("log-{recording}-{command}"));
        std::fs::write(&log, "")?;
        let verdict = verdict(&program, &recordings[*recording], *command, ("SWEEP_LOG", &log))?;
        let read = std::fs::read_to_string(&log)?;
        std::fs::remove_file(&log)?;
        Ok((verdict, read.lines().map(str::parse).collect::<Result<_, _>>()?))
    };
    let base: BTreeMap<(usize, usize), (String, Vec<usize>)> =
        runs.iter().copied().zip(each(&runs, read)?).collect();
    let mut trials = Vec::new();
    for (&(recording, command), (_, read)) in &base {
        trials.extend(read.iter().flat_map(|&constant| {
            let trial = move |is_half| Trial { constant, is_half, recording, command };
            [true, false].map(trial)
        }));
    }
    trials.sort_by_key(|trial| trial.constant);
    let changed = each(&trials, |trial| {
        let change = if trial.is_half { "half" } else { "double" };
        let text = format!("{} {change}", trial.constant);
        let (path, command) = (&recordings[trial.recording], trial.command);
        let new = verdict(&program, path, command, ("SWEEP_TRIAL", Path::new(&text)))?;
        Ok(new != base[&(trial.recording, command)].0)
    })?;
    let out = options.out.clone().unwrap_or_else(|| repo.target.join("sweep.md"));
    std::fs::write(&out, table(&constants, recordings.len(), &trials, &changed))?;
    println!("{}", out.display());
    Ok(())
}

/// The results of `job` for all items, in their order, on all processors.
fn each<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = job(item);
            if at % 1000 == 999 {
                eprintln!("{} of {}", at + 1, items.len());
            }
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|result| result.0);
    results.into_iter().map(|result| result.1).collect()
}

/// The recordings: each file that is no copy of another one and not damaged on purpose.
fn recordings(repo: &Repo, options: &Options) -> Result<Vec<PathBuf>> {
    let mut found: BTreeMap<Vec<u8>, PathBuf> = BTreeMap::new();
    for folder in options.folder.iter().chain([&repo.path("test_data")]) {
        ensure!(folder.is_dir(), "{} is no folder", folder.display());
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
    Ok(found.into_iter().step_by(options.every.max(1)).collect())
}

/// Builds the program with constants that can change. Returns them, and the program.
fn build(repo: &Repo, tree: &Path, only: &str) -> Result<(Vec<Constant>, PathBuf)> {
    let is_swept =
        |name: &str| name.ends_with(".rs") && CRATES.iter().any(|folder| name.starts_with(folder));
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for name in files::tracked(repo)? {
        if is_swept(&name) {
            sources.insert(name.clone(), std::fs::read_to_string(repo.path(&name))?);
        } else if !["web/", "test_data/", "docs/"].iter().any(|part| name.starts_with(part)) {
            update(&tree.join(&name), &std::fs::read(repo.path(&name))?)?;
        }
    }
    let mut constants: Vec<Constant> = Vec::new();
    for (name, code) in sources.iter().filter(|source| source.0.contains(only)) {
        constants.extend(source::constants(name, code));
    }
    for folder in CRATES {
        update(&tree.join(folder).join("sweep.rs"), include_bytes!("sweep/get.rs"))?;
    }
    // Indexes of constants that cannot be functions.
    let mut fixed: BTreeSet<usize> = BTreeSet::new();
    loop {
        let swept: Vec<(usize, &Constant)> =
            (0..).zip(&constants).filter(|(i, _)| !fixed.contains(i)).collect();
        for (name, code) in &sources {
            let of_crate = swept.iter().copied().filter(|c| crate_of(&c.1.file) == crate_of(name));
            let mut new = source::rewritten(name, code, &of_crate.collect::<Vec<_>>());
            if name.ends_with("/src/lib.rs") {
                new.push_str("mod sweep;\n");
            }
            update(&tree.join(name), new.as_bytes())?;
        }
        let mut build = cargo(&["build", "--release", "--message-format=json"], tree);
        let output = build.output().context("cannot start cargo")?;
        if output.status.success() {
            break;
        }
        let named = errors(&String::from_utf8_lossy(&output.stdout), tree)?;
        let before = fixed.len();
        for (file, words) in &named {
            let is_named = |c: &Constant| words.contains(&c.name);
            let declares = |name: &str| constants.iter().any(|c| c.file == *file && c.name == name);
            fixed.extend(
                swept
                    .iter()
                    .filter(|(_, c)| is_named(c) && (c.file == *file || !declares(&c.name)))
                    .map(|c| c.0),
            );
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

/// The crate's folder.
fn crate_of(file: &str) -> Option<&str> {
    file.split('/').nth(1)
}

/// Writes a file unless it has these bytes, so that cargo builds little again.
fn update(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// A cargo that builds the program quickly.
fn cargo(args: &[&str], tree: &Path) -> Command {
    let mut cargo = cmd::cargo(args, tree);
    let profile = [("LTO", "off"), ("OPT_LEVEL", "1"), ("CODEGEN_UNITS", "64")];
    for (name, value) in profile {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
    }
    cargo.env("CARGO_INCREMENTAL", "1").args(["-p", "vramscope-cli"]);
    cargo
}

/// The words of the lines that do not compile, by file.
fn errors(messages: &str, tree: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["message"]["level"] != "error" {
            continue;
        }
        for span in message["message"]["spans"].as_array().into_iter().flatten() {
            let Some(file) = span["file_name"].as_str() else { continue };
            let line = |end: &str| span[end].as_u64().unwrap_or(1) as usize;
            let code = std::fs::read_to_string(tree.join(file))?;
            let (first, last) = (line("line_start"), line("line_end"));
            for line in code.lines().skip(first - 1).take(last + 1 - first) {
                let words = source::words(line).map(|word| line[word].to_owned());
                found.entry(file.to_owned()).or_default().extend(words);
            }
        }
    }
    Ok(found)
}

/// What a command says of a recording, without what only describes it.
fn verdict(program: &Path, path: &Path, command: usize, set: (&str, &Path)) -> Result<String> {
    let (name, options) = COMMANDS[command].split_first().context("a command")?;
    let mut run = Command::new("timeout");
    run.arg(SECONDS).arg(program).arg(name).arg(path).args(options).args(["--format", "json"]);
    let output = run.env(set.0, set.1).output().context("cannot start the program")?;
    let Ok(json) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Ok(format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr)));
    };
    let all = |list: &str| json[list].as_array().cloned().unwrap_or_default();
    let picked = |list: &str, keys: &[&str]| {
        let pick = |of: &Value| keys.iter().map(|key| of[key].to_string()).collect::<Vec<_>>();
        format!("{:?}", all(list).iter().map(pick).collect::<BTreeSet<_>>())
    };
    Ok(match *name {
        "diagnose" => picked("findings", &["kind", "severity", "title"]),
        "what-if" => {
            picked("scenarios", &["change", "active_peak", "reserved_peak", "outcome", "declined"])
        }
        _ => {
            let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
            for stack in all("stacks") {
                *bytes.entry(stack["category"].to_string()).or_default() +=
                    stack["bytes"].as_u64().unwrap_or(0);
            }
            format!("{bytes:?}")
        }
    })
}

/// The table: constants by file, with the verdicts that change when it is halved and doubled.
fn table(constants: &[Constant], all: usize, trials: &[Trial], changed: &[bool]) -> String {
    let mut counts: BTreeMap<(usize, usize, bool), u32> = BTreeMap::new();
    let mut read: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (trial, changed) in trials.iter().zip(changed) {
        read.entry(trial.constant).or_default().insert(trial.recording);
        *counts.entry((trial.constant, trial.command, trial.is_half)).or_default() +=
            u32::from(*changed);
    }
    let mut out = format!(
        "Verdicts that change when a constant is halved, doubled; of {all} recordings.\n\n\
         | file | constant | value | read by | diagnose | peak | what-if |\n|---|---|---|---|---|---|---|\n"
    );
    for (i, constant) in constants.iter().enumerate() {
        let recordings = read.get(&i).map_or(0, BTreeSet::len);
        let file = constant.file.trim_start_matches("crates/vramscope-").replace("/src/", " ");
        write!(out, "| {file} | {} | {} | {recordings}", constant.name, constant.value)
            .expect("writing to a String cannot fail");
        for command in 0..COMMANDS.len() {
            let of = |is_half| counts.get(&(i, command, is_half)).copied().unwrap_or(0);
            write!(out, " | {}, {}", of(true), of(false)).expect("writing to a String cannot fail");
        }
        out.push_str(" |\n");
    }
    out
}
