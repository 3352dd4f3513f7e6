//! Counts what the page's wasm modules do with files, and compares the counts with
//! `bench/cost.json` and with budgets.
//!
//! Times differ between machines and minutes. A module executes the same instructions for the same
//! file everywhere, so its counts can be compared. Work that grows faster than the file shows in
//! the ratio between a large and a small file.

mod counted;

use crate::{cmd, generate, repo::Repo};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const COMMITTED: &str = "bench/cost.json";
const MODULES: [&str; 2] = ["vramscope_worker", "vramscope_view"];
/// Relative tolerance of committed counts. Inlining changes with unrelated code, by 5 % so far.
const TOLERANCE: f64 = 0.1;
/// Absolute tolerance of memory, in bytes: whether a vector fits into a gap of the heap is chance.
const MEMORY_TOLERANCE: u64 = 1 << 20;

/// Events of the two generated files, of 7 and 107 MB.
const EVENTS: [u64; 2] = [50_000, 800_000];
/// Live blocks of the generated files.
const LIVE: u64 = 5_000;
/// Limit of the count per event of the large file, relative to the small file. Sorting alone takes
/// 1.25 times as much.
const GROWTH: f64 = 1.3;

/// Name of the module's memory after reading, which never shrinks.
const MEMORY: &str = "memory, bytes";
/// Budget of the memory: the smaller of a sum per event and per memo entry, and of a share of the
/// file.
const BYTES_PER_EVENT: f64 = 60.0;
const BYTES_PER_MEMO_ENTRY: f64 = 8.0;
const MEMO_ENTRIES_PER_EVENT: f64 = 2.7;
const SHARE_OF_FILE: f64 = 0.6;

/// Recordings of `test_data`: a leak, and one of several ranks.
const RECORDED: [&str; 2] = ["gpt_leak.pickle.gz", "ranks_fsdp/rank3_memory_snapshot.pickle.gz"];

/// Prefix of the counts of a frame. Each is the maximum of all frames.
const FRAME: &str = "a frame";
const INSTRUCTIONS: &str = ": instructions";
const DRAW_CALLS: &str = ": draw calls";
/// Budget of a frame.
const MAX_DRAW_CALLS: u64 = 20;

/// The committed count of every file.
const READ: &str = "read";
/// Further committed counts of the large file. All other counts are only held to budgets.
const OF_LARGE_FILE: [&str; 10] = [
    "outline, whole",
    "timeline, whole",
    "timeline, a hundredth",
    "summary",
    "blocks, by size",
    "events, by a word",
    "flame graph",
    "a frame of panning: instructions",
    MEMORY,
    "memory with all views, bytes",
];

/// Counts by name.
type Counts = BTreeMap<String, u64>;

/// Counts, prints and compares. With `update` the counts are written instead of compared.
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
    all.extend(EVENTS.map(file_name).into_iter().zip(counts));

    let now = committed_part(&all);
    let committed = repo.path(COMMITTED);
    if update {
        let text = serde_json::to_string_pretty(&now)? + "\n";
        std::fs::write(&committed, text)
            .with_context(|| format!("writing {}", committed.display()))?;
    } else {
        let text = std::fs::read_to_string(&committed)
            .with_context(|| format!("reading {}", committed.display()))?;
        let before = serde_json::from_str(&text).with_context(|| format!("in {COMMITTED}"))?;
        let Changes { regressions, improvements } = changes(&before, &now);
        for improvement in &improvements {
            println!("improved: {improvement}");
        }
        if !improvements.is_empty() {
            println!("`cargo xtask cost --update` commits the improvement");
        }
        faults.extend(regressions);
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The counts that are committed: few enough to be read in a diff.
fn committed_part(all: &BTreeMap<String, Counts>) -> BTreeMap<String, Counts> {
    let large = file_name(EVENTS[1]);
    let is_committed =
        |file: &str, name: &str| name == READ || file == large && OF_LARGE_FILE.contains(&name);
    let of_file = |(file, counts): (&String, &Counts)| {
        let kept = counts.iter().filter(|(name, _)| is_committed(file, name));
        (file.clone(), kept.map(|(name, count)| (name.clone(), *count)).collect())
    };
    all.iter().map(of_file).collect()
}

/// Name of a generated file in `bench/cost.json`.
fn file_name(events: u64) -> String {
    format!("{events} events, generated")
}

/// Generates a file in a folder of its own.
fn generated(repo: &Repo, folder: &Path, events: u64) -> Result<PathBuf> {
    let out = folder.join(events.to_string());
    generate::run(repo, &generate::Options::new(events, LIVE, out.clone()))?;
    Ok(out.join("rank0_memory_snapshot.pickle"))
}

fn count(repo: &Repo, folder: &Path, file: &Path) -> Result<Counts> {
    let mut node = cmd::command("node", &[], &repo.root);
    node.arg(repo.path("bench/cost.mjs")).arg(folder).arg(file);
    serde_json::from_str(&cmd::output(&mut node)?)
        .with_context(|| format!("counts of {}", file.display()))
}

/// A count per event.
fn per_event(counts: &Counts, name: &str, events: u64) -> f64 {
    counts.get(name).copied().unwrap_or_default() as f64 / events as f64
}

fn print([small, large]: &[Counts; 2]) {
    let (frames, rest): (Vec<_>, Vec<_>) = small.keys().partition(|name| name.starts_with(FRAME));
    println!(
        "\ninstructions per event of {} and of {} events, unless stated otherwise:",
        EVENTS[0], EVENTS[1]
    );
    for name in rest {
        let [before, after] =
            [per_event(small, name, EVENTS[0]), per_event(large, name, EVENTS[1])];
        println!("{before:>10.1} {after:>10.1} {:>6.2}  {name}", after / before);
    }
    println!("\nmaximum of all frames:");
    for name in frames {
        let [before, after] =
            [small, large].map(|counts| counts.get(name).copied().unwrap_or_default());
        println!("{before:>10} {after:>10}         {name}");
    }
}

/// Counts that exceed a budget.
fn over_budget([small, large]: &[Counts; 2], bytes: u64) -> Vec<String> {
    let mut faults = Vec::new();
    for name in small.keys() {
        let growth = per_event(large, name, EVENTS[1]) / per_event(small, name, EVENTS[0]);
        if growth > GROWTH {
            faults.push(format!(
                "{name}: {growth:.2} times as much per event of {} as of {}, limit {GROWTH}",
                EVENTS[1], EVENTS[0]
            ));
        }
    }
    for (name, &count) in large.iter().filter(|(name, _)| name.starts_with(FRAME)) {
        let growth = count as f64 / small.get(name).copied().unwrap_or_default() as f64;
        if name.ends_with(INSTRUCTIONS) && growth > GROWTH {
            faults.push(format!(
                "{name}: {growth:.2} times as many in the large file, limit {GROWTH}"
            ));
        }
        if name.ends_with(DRAW_CALLS) && count > MAX_DRAW_CALLS {
            faults.push(format!("{name}: {count}, limit {MAX_DRAW_CALLS}"));
        }
    }
    let memory = large.get(MEMORY).copied().unwrap_or(u64::MAX);
    let each = BYTES_PER_EVENT + BYTES_PER_MEMO_ENTRY * MEMO_ENTRIES_PER_EVENT;
    let budget = (each * EVENTS[1] as f64).min(bytes as f64 * SHARE_OF_FILE) as u64;
    if memory > budget {
        faults.push(format!(
            "{MEMORY}: {memory} for a file of {bytes} bytes with {} events, limit {budget}",
            EVENTS[1]
        ));
    }
    faults
}

/// Differences from the committed counts that exceed the tolerance.
#[derive(Debug, Default)]
struct Changes {
    /// Counts that are higher, missing or not committed yet.
    regressions: Vec<String>,
    /// Counts that are lower.
    improvements: Vec<String>,
}

fn changes(committed: &BTreeMap<String, Counts>, now: &BTreeMap<String, Counts>) -> Changes {
    let mut changes = Changes::default();
    let empty = Counts::new();
    let files = committed.keys().chain(now.keys().filter(|file| !committed.contains_key(*file)));
    for file in files {
        let [before, after] = [committed, now].map(|all| all.get(file).unwrap_or(&empty));
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        for name in names {
            match (before.get(name), after.get(name)) {
                (Some(&before), Some(&after)) => {
                    let memory = if name.starts_with("memory") { MEMORY_TOLERANCE } else { 0 };
                    let tolerance = (TOLERANCE * before as f64).max(memory as f64);
                    if before.abs_diff(after) as f64 <= tolerance {
                        continue;
                    }
                    let percent = (after as f64 / before as f64 - 1.0) * 100.0;
                    let text = format!("{file}, {name}: {before} to {after} ({percent:+.1} %)");
                    let list = if after > before {
                        &mut changes.regressions
                    } else {
                        &mut changes.improvements
                    };
                    list.push(text);
                }
                (before, _) => {
                    let what = if before.is_some() { "no longer counted" } else { "not committed" };
                    changes.regressions.push(format!("{file}, {name}: {what}"));
                }
            }
        }
    }
    if !changes.regressions.is_empty() {
        let hint = format!("if that is intended, `cargo xtask cost --update` writes {COMMITTED}");
        changes.regressions.push(hint);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, u64)]) -> Counts {
        rows.iter().map(|&(name, n)| (name.to_owned(), n)).collect()
    }

    #[test]
    fn growth_and_memory_have_budgets() {
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
        // Memory has two budgets: by events, and by the size of the file.
        assert!(over_budget(&linear, 80 * large)[0].starts_with(MEMORY));
        let [small, mut full] = linear;
        full.insert(MEMORY.to_owned(), 85 * large);
        assert_eq!(over_budget(&[small, full], 1000 * large).len(), 2);
    }

    #[test]
    fn frames_have_budgets_of_growth_and_draw_calls() {
        let panned = |instructions, draws| {
            let bytes = ("a frame of panning: bytes for the GPU", instructions);
            let rows = [
                ("a frame of panning: instructions", instructions),
                ("a frame of panning: draw calls", draws),
            ];
            of(&[&rows[..], &[bytes, (MEMORY, 0)]].concat())
        };
        let faults = |large| over_budget(&[panned(1000, 4), large], 0);
        assert_eq!(faults(panned(1300, MAX_DRAW_CALLS)), Vec::<String>::new());
        let grown = faults(panned(1310, MAX_DRAW_CALLS));
        assert!(
            matches!(
                &grown[..],
                [one] if one.starts_with("a frame of panning: instructions: 1.31 times")
            ),
            "{grown:?}"
        );
        let often = faults(panned(1000, MAX_DRAW_CALLS + 1));
        assert!(
            matches!(&often[..], [one] if one.starts_with("a frame of panning: draw calls: 21")),
            "{often:?}"
        );
    }

    #[test]
    fn only_regressions_fail() {
        let files = |rows: &[(&str, u64)]| BTreeMap::from([("file".to_owned(), of(rows))]);
        let before = files(&[("card", 1000), ("read", 1000), ("range", 1000)]);
        let within = changes(&before, &files(&[("card", 1095), ("read", 905), ("range", 1000)]));
        assert!(within.regressions.is_empty() && within.improvements.is_empty(), "{within:?}");

        let beyond = changes(&before, &files(&[("card", 1105), ("read", 895), ("flame", 5)]));
        let expected = [
            "file, card: 1000 to 1105 (+10.5 %)",
            "file, range: no longer counted",
            "file, flame: not committed",
        ];
        assert_eq!(beyond.regressions[..3], expected);
        assert_eq!(beyond.regressions.len(), 4, "the last one is a hint");
        assert_eq!(beyond.improvements, ["file, read: 1000 to 895 (-10.5 %)"]);
    }

    #[test]
    fn memory_may_change_by_a_megabyte() {
        let memory = |bytes| BTreeMap::from([("file".to_owned(), of(&[(MEMORY, bytes)]))]);
        let regressions =
            |before, after| changes(&memory(before), &memory(after)).regressions.len();
        let mib = MEMORY_TOLERANCE;
        assert_eq!(regressions(3 * mib, 4 * mib), 0);
        assert_eq!(regressions(3 * mib, 4 * mib + 1), 2);
        assert_eq!(regressions(30 * mib, 34 * mib), 2);
    }

    #[test]
    fn about_a_dozen_counts_are_committed() {
        let names = ["read", "card", MEMORY, "blocks, by size"];
        let counts = of(&names.map(|name| (name, 1)));
        let files = EVENTS.map(file_name).map(|file| (file, counts.clone()));
        let kept = committed_part(&BTreeMap::from(files));
        assert_eq!(kept[&file_name(EVENTS[0])], of(&[("read", 1)]));
        assert_eq!(
            kept[&file_name(EVENTS[1])],
            of(&[("read", 1), (MEMORY, 1), ("blocks, by size", 1)])
        );
    }
}
