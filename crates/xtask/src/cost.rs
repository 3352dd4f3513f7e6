//! What the page's modules do with files, counted, against what they did when `bench/cost.json` was
//! written and against budgets.
//!
//! Times differ from machine to machine and from one minute to the next. A module executes the same
//! instructions for the same file everywhere, so these counts can be held, and a piece of work that
//! grows faster than the file is seen in a small one.

mod counted;

use crate::{cmd, generate, repo::Repo};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const COMMITTED: &str = "bench/cost.json";
const MODULES: [&str; 3] = ["vramscope_worker", "vramscope_worker_views", "vramscope_view"];
/// By how much a count may differ from the committed one: what the compiler inlines changes with
/// code elsewhere, by a twentieth so far.
const SLACK: f64 = 0.1;
/// By how many bytes memory may in any case: by a vector that found a hole to be in, or just did
/// not.
const HOLE: u64 = 1 << 20;

/// Events of the generated files, of which the second is larger than 100 MB, and how many blocks
/// are live in both.
const EVENTS: [u64; 2] = [50_000, 800_000];
const LIVE: u64 = 5_000;
/// How much more the larger one may take an event than the smaller: a sort takes a fourth more.
const GROWTH: f64 = 1.3;

/// The module's memory, which never shrinks, when a file is there: what it may be for each event
/// and for each of the memo's entries, of which a generated file has so many an event; and what it
/// may be of the file's bytes.
const MEMORY: &str = "memory, bytes";
const BYTES_AN_EVENT: f64 = 60.0;
const BYTES_AN_ENTRY: f64 = 8.0;
const ENTRIES_AN_EVENT: f64 = 2.7;
const OF_THE_FILE: f64 = 0.6;

/// What was recorded, beside what is generated: a leak, and a rank of several.
const RECORDED: [&str; 2] = ["gpt_leak.pickle.gz", "ranks_fsdp/rank3_memory_snapshot.pickle.gz"];

/// How the counts of a frame begin: each is what one took at most, whatever the file.
const FRAME: &str = "a frame";
/// How those of its instructions end, and of what is drawn in how many calls. Of these it may take
/// so many.
const INSTRUCTIONS: &str = ": instructions";
const DRAWS: &str = ": draw calls";
const MOST_DRAWS: u64 = 20;

/// Counts by name.
type Counts = BTreeMap<String, u64>;

/// Counts, prints and compares; with `update` what was counted is what is committed from now on.
pub(crate) fn run(repo: &Repo, update: bool) -> Result<()> {
    let folder = repo.target.join("xtask/cost");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for name in MODULES.map(|name| format!("{name}_bg.wasm")) {
        let built = repo.path("web/viewer/wasm").join(&name);
        let wasm = std::fs::read(&built).with_context(|| {
            format!("reading {}: `cargo xtask build` makes it", built.display())
        })?;
        let counted = counted::module(&wasm).with_context(|| format!("making {name} count"))?;
        std::fs::write(folder.join(&name), counted)?;
    }
    let mut all = BTreeMap::new();
    for name in RECORDED {
        all.insert(
            name.to_owned(),
            count(repo, &folder, &repo.path("test_data/recorded").join(name))?,
        );
    }
    let [small, large] = EVENTS.map(|events| generated(repo, &folder, events));
    let (small, large) = (small?, large?);
    let counts = [count(repo, &folder, &small)?, count(repo, &folder, &large)?];
    print(&counts);
    let mut faults = over_budget(&counts, std::fs::metadata(&large)?.len());
    all.extend(EVENTS.map(|events| format!("{events} events, generated")).into_iter().zip(counts));

    let committed = repo.path(COMMITTED);
    if update {
        let text = serde_json::to_string_pretty(&all)? + "\n";
        std::fs::write(&committed, text)
            .with_context(|| format!("writing {}", committed.display()))?;
    } else {
        let text = std::fs::read_to_string(&committed)
            .with_context(|| format!("reading {}", committed.display()))?;
        faults.extend(changed(
            &serde_json::from_str(&text).with_context(|| format!("in {COMMITTED}"))?,
            &all,
        ));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// A generated file of so many events, in a folder of its own.
fn generated(repo: &Repo, folder: &Path, events: u64) -> Result<PathBuf> {
    let out = folder.join(events.to_string());
    generate::run(repo, &generate::Options::new(events, LIVE, out.clone()))?;
    Ok(out.join("rank0_memory_snapshot.pickle"))
}

fn count(repo: &Repo, folder: &Path, file: &Path) -> Result<Counts> {
    let mut node = cmd::command("node", &[], &repo.root);
    node.arg(repo.path("bench/cost.mjs")).arg(folder).arg(file);
    serde_json::from_str(&cmd::output(&mut node)?)
        .with_context(|| format!("what was counted of {}", file.display()))
}

/// What of a count is one event's.
fn each(counts: &Counts, name: &str, events: u64) -> f64 {
    counts.get(name).copied().unwrap_or_default() as f64 / events as f64
}

fn print([small, large]: &[Counts; 2]) {
    let (frames, rest): (Vec<_>, Vec<_>) = small.keys().partition(|name| name.starts_with(FRAME));
    println!(
        "\nby event of {} and of {}, instructions where nothing else is said:",
        EVENTS[0], EVENTS[1]
    );
    for name in rest {
        let [before, after] = [each(small, name, EVENTS[0]), each(large, name, EVENTS[1])];
        println!("{before:>10.1} {after:>10.1} {:>6.2}  {name}", after / before);
    }
    println!("\nat most:");
    for name in frames {
        let [before, after] =
            [small, large].map(|counts| counts.get(name).copied().unwrap_or_default());
        println!("{before:>10} {after:>10}         {name}");
    }
}

/// What takes more than it may, whatever is committed.
fn over_budget([small, large]: &[Counts; 2], bytes: u64) -> Vec<String> {
    let mut faults = Vec::new();
    for name in small.keys() {
        let growth = each(large, name, EVENTS[1]) / each(small, name, EVENTS[0]);
        if growth > GROWTH {
            faults.push(format!(
                "{name}: {growth:.2} times as much an event of {} as of {}, of {GROWTH}",
                EVENTS[1], EVENTS[0]
            ));
        }
    }
    for (name, &count) in large.iter().filter(|(name, _)| name.starts_with(FRAME)) {
        let growth = count as f64 / small.get(name).copied().unwrap_or_default() as f64;
        if name.ends_with(INSTRUCTIONS) && growth > GROWTH {
            faults
                .push(format!("{name}: {growth:.2} times as many in the larger file, of {GROWTH}"));
        }
        if name.ends_with(DRAWS) && count > MOST_DRAWS {
            faults.push(format!("{name}: {count}, of {MOST_DRAWS}"));
        }
    }
    let memory = large.get(MEMORY).copied().unwrap_or(u64::MAX);
    let an_event = BYTES_AN_EVENT + BYTES_AN_ENTRY * ENTRIES_AN_EVENT;
    let budget = (an_event * EVENTS[1] as f64).min(bytes as f64 * OF_THE_FILE) as u64;
    if memory > budget {
        faults.push(format!(
            "{MEMORY}: {memory} for {bytes} bytes with {} events, of {budget}",
            EVENTS[1]
        ));
    }
    faults
}

/// What is not as it was committed.
fn changed(committed: &BTreeMap<String, Counts>, now: &BTreeMap<String, Counts>) -> Vec<String> {
    let mut faults = Vec::new();
    let empty = Counts::new();
    let files = committed.keys().chain(now.keys().filter(|file| !committed.contains_key(*file)));
    for file in files {
        let [before, after] = [committed, now].map(|all| all.get(file).unwrap_or(&empty));
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        for name in names {
            let [before, after] = [before, after].map(|counts| counts.get(name).copied());
            let change = after.unwrap_or(0) as f64 / before.unwrap_or(0) as f64 - 1.0;
            let hole = if name.starts_with("memory") { HOLE } else { 0 };
            let is_within = before.zip(after).is_some_and(|(before, after)| {
                before.abs_diff(after) as f64 <= (SLACK * before as f64).max(hole as f64)
            });
            if !is_within {
                let words = [before, after]
                    .map(|n| n.map_or_else(|| "nothing".to_owned(), |n| n.to_string()));
                let [before, after] = words;
                faults.push(format!(
                    "{file}, {name}: {before} committed, {after} now ({:+.1} %)",
                    change * 100.0
                ));
            }
        }
    }
    if !faults.is_empty() {
        faults.push(format!("if that is meant, `cargo xtask cost --update` writes {COMMITTED}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, u64)]) -> Counts {
        rows.iter().map(|&(name, n)| (name.to_owned(), n)).collect()
    }

    #[test]
    fn what_grows_faster_than_the_file_is_over_budget() {
        let [small, large] = EVENTS;
        let linear = [
            of(&[("read", 10 * small), (MEMORY, 50 * small)]),
            of(&[("read", 10 * large), (MEMORY, 50 * large)]),
        ];
        let bytes = 130 * large;
        assert_eq!(over_budget(&linear, bytes), Vec::<String>::new());
        let [slow, mut quadratic] = linear.clone();
        quadratic.insert("read".to_owned(), 14 * large);
        assert!(over_budget(&[slow, quadratic], bytes)[0].starts_with("read: 1.40 times"));
        // Memory has a budget of its own, of events and of bytes.
        assert!(over_budget(&linear, 80 * large)[0].starts_with(MEMORY));
        let [small, mut full] = linear;
        full.insert(MEMORY.to_owned(), 85 * large);
        assert_eq!(over_budget(&[small, full], 1000 * large).len(), 2);
    }

    #[test]
    fn a_frame_is_over_budget_when_it_grows_with_the_file_or_draws_often() {
        let panned = |instructions, draws| {
            let bytes = ("a frame of panning: bytes for the GPU", instructions);
            let rows = [
                ("a frame of panning: instructions", instructions),
                ("a frame of panning: draw calls", draws),
            ];
            of(&[&rows[..], &[bytes, (MEMORY, 0)]].concat())
        };
        let told = |large| over_budget(&[panned(1000, 4), large], 0);
        assert_eq!(told(panned(1300, MOST_DRAWS)), Vec::<String>::new());
        let grown = told(panned(1310, MOST_DRAWS));
        assert!(
            matches!(&grown[..], [one] if one.starts_with("a frame of panning: instructions: 1.31 times")),
            "{grown:?}"
        );
        let often = told(panned(1000, MOST_DRAWS + 1));
        assert!(
            matches!(&often[..], [one] if one.starts_with("a frame of panning: draw calls: 21")),
            "{often:?}"
        );
    }

    #[test]
    fn a_count_that_is_another_is_told_and_so_is_one_that_is_gone_or_new() {
        let files = |rows: &[(&str, u64)]| BTreeMap::from([("file".to_owned(), of(rows))]);
        let before = files(&[("card", 1000), ("read", 1000), ("range", 1000)]);
        assert_eq!(
            changed(&before, &files(&[("card", 1095), ("read", 905), ("range", 1000)])),
            Vec::<String>::new()
        );
        let told = changed(&before, &files(&[("card", 1105), ("read", 895), ("flame", 5)]));
        let starts = [
            "file, card: 1000 committed, 1105 now (+10.5 %)",
            "file, range: 1000 committed, nothing",
            "file, read: 1000 committed, 895 now (-10.5 %)",
            "file, flame: nothing",
        ];
        assert_eq!(told.len(), starts.len() + 1, "{told:?}");
        assert!(told.iter().zip(starts).all(|(told, start)| told.starts_with(start)), "{told:?}");
        assert!(!changed(&before, &BTreeMap::new()).is_empty());
        // Memory by a hole, however small the file.
        let memory = |bytes| files(&[("memory, bytes", bytes)]);
        assert_eq!(changed(&memory(3 * HOLE), &memory(4 * HOLE)), Vec::<String>::new());
        assert_eq!(changed(&memory(3 * HOLE), &memory(4 * HOLE + 1)).len(), 2);
        assert_eq!(changed(&memory(30 * HOLE), &memory(34 * HOLE)).len(), 2);
        assert!(!changed(&memory(HOLE), &files(&[])).is_empty());
    }
}
