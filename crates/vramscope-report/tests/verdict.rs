//! What the verdict says about recordings of known programs.

use std::path::Path;
use vramscope_inference::MemoryUse;
use vramscope_report::verdict::{self, MemoryBar, Verdict};
use vramscope_report::{FileReader, LoadedFile, Severity, Target, plain, state};
use vramscope_trace::LiveSet;
use vramscope_trace::slicing::now;

/// A file of `test_data`.
fn load(path: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(path);
    let bytes = std::fs::read(&path).expect("a file of test_data");
    let mut reader = FileReader::new("file", bytes.len() as u64);
    bytes.chunks(1 << 16).try_for_each(|chunk| reader.feed(chunk)).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn of(target: Target<'_>) -> Verdict {
    now(async |budget| verdict::verdict(target, budget).await)
}

/// The verdict about the first device of a file, with what the model of the allocator says.
fn verdict(path: &str) -> Verdict {
    let file = load(path);
    file.entries[0].simulate(0);
    of(file.target(0, 0).expect("a device"))
}

fn bytes(bar: &MemoryBar, name: &str) -> u64 {
    bar.parts.iter().find(|part| part.name == name).map_or(0, |part| part.bytes.0)
}

#[test]
fn parts_of_the_bar_add_up_to_the_byte() {
    for path in [
        "recorded/gpt_leak.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "recorded/gpt_state_only.pickle",
        "recorded/late_expandable_26.pickle.gz",
        "recorded/oom_expandable.pickle.gz",
        "recorded/t26/gpt_small.pickle.gz",
        "run_folder/rank0_memory_snapshot.pickle",
    ] {
        let file = load(path);
        let target = file.target(0, 0).expect("a device");
        let bar = of(target).memory;
        let slot = u32::try_from(bar.event + 1).expect("a slot");
        let state = state::state(target, slot, None);
        let outside = bytes(&bar, "device_free") + bytes(&bar, "outside");
        let sum: u64 = bar.parts.iter().map(|part| part.bytes.0).sum();
        assert_eq!(sum - outside, state.reserved_bytes, "{path}");
        assert_eq!(bar.reserved.0, state.reserved_bytes, "{path}");
        for share in &state.categories {
            assert_eq!(bytes(&bar, share.category.name()), share.bytes.0, "{path} {share:?}");
        }
        let rounding = state.active_bytes - state.requested_bytes;
        assert_eq!(bytes(&bar, "rounding"), rounding, "{path}");
        let free = bytes(&bar, "idle")
            + bytes(&bar, "stuck")
            + bytes(&bar, "small")
            + bytes(&bar, "graph_pools");
        assert_eq!(free, state.reserved_bytes - state.active_bytes, "{path}");
    }
}

#[test]
fn the_use_of_memory_meets_the_live_blocks_at_every_moment() {
    let file = load("recorded/gpt_max_split.pickle.gz");
    let target = file.target(0, 0).expect("a device");
    let evidence = target.entry.evidence(0);
    let slots = target.trace().slots();
    for slot in (0..slots).step_by(slots as usize / 20) {
        let live = now(async |budget| LiveSet::new(target.trace(), slot, budget).await);
        let requested: u64 =
            live.blocks().iter().map(|&i| target.trace().blocks[i as usize].bytes.0).sum();
        let (memory, categories) = now(async |budget| MemoryUse::at(evidence, slot, budget).await);
        assert_eq!(categories.iter().sum::<u64>(), requested, "{slot}");
        assert_eq!(memory.in_use.0, requested, "{slot}");
        assert_eq!(
            memory.reserved().0,
            now(async |budget| target.trace().reserved(target.snapshot(), budget).await).at(slot),
            "{slot}"
        );
    }
}

#[test]
fn a_failed_allocation_is_told_first_with_what_is_missing() {
    let verdict = verdict("recorded/oom_expandable.pickle.gz");
    let text = plain(&verdict.headline);
    assert!(text.starts_with("Out of memory"), "{text}");
    assert!(text.contains(" short"), "{text}");
    assert_eq!(verdict.severity, Some(Severity::High));
    assert!(
        verdict.finding.as_ref().is_some_and(|id| id.to_string().starts_with("oom-0-")),
        "{verdict:?}"
    );
    let bar = &verdict.memory;
    let (capacity, request) = (bar.capacity.expect("known"), bar.request.expect("failed"));
    assert_eq!(capacity.0, bar.reserved.0 + bytes(bar, "device_free"));
    assert!(bar.reserved.0 + request.0 > capacity.0, "the request ends behind the capacity");
    assert_eq!(bar.scale().0, bar.reserved.0 + request.0);
    // The amount leads to the event of the request.
    let short = verdict.headline.iter().find(|phrase| phrase.event.is_some()).expect("a link");
    assert_eq!(i64::from(short.event.expect("an event")), bar.event);
    assert!(text.contains(&format!(": {}", short.text)), "{text}");
}

#[test]
fn growth_names_its_line_and_its_amount() {
    let verdict = verdict("recorded/gpt_leak.pickle.gz");
    assert_eq!(
        plain(&verdict.headline),
        "Leak at p_gpt.py:31 train_step: +49.1 MiB per step, 12 steps in a row"
    );
    let filters: Vec<_> = verdict.headline.iter().filter_map(|p| p.filter.as_deref()).collect();
    assert_eq!(filters, ["site:p_gpt.py:31"]);
    assert!(verdict.memory.request.is_none() && verdict.memory.capacity.is_none());
}

#[test]
fn without_a_finding_the_peak_is_told() {
    let file = load("recorded/t20/resnet50_ok.pickle.gz");
    let target = file.target(0, 0).expect("a device");
    let verdict = of(target);
    assert_eq!(verdict.severity, None, "{verdict:?}");
    let text = plain(&verdict.headline);
    assert!(text.starts_with("Peak "), "{text}");
    // The category of the sentence is the largest of the bar, with its share of the peak.
    let of = |phrase: &vramscope_report::Phrase| {
        phrase.filter.as_deref()?.strip_prefix("category:").map(str::to_owned)
    };
    let name = &verdict.headline.iter().find_map(of).expect("a category");
    let of_blocks = |part: &&verdict::MemoryPart| part.category.is_some();
    let all: Vec<u64> = verdict.memory.parts.iter().filter(of_blocks).map(|p| p.bytes.0).collect();
    let (own, whole) = (bytes(&verdict.memory, name), all.iter().sum::<u64>());
    assert_eq!(all.iter().max(), Some(&own), "{text}");
    assert!(text.contains(&format!(": {} % ", (own * 100 + whole / 2) / whole)), "{text}");
    let line = &verdict.lines.as_ref().expect("of the peak")[0];
    assert!(text.ends_with(&format!("{}, {}", line.site, line.bytes.brief())), "{text}");
    let peak = target.trace().requested_band.peak_event.expect("a peak in the window");
    assert_eq!(verdict.memory.event, i64::from(peak));
}

#[test]
fn a_part_with_a_known_cure_has_the_first_words_if_it_is_larger_than_each_category() {
    let file = load("recorded/t26/gpt_small.pickle.gz");
    let verdict = of(file.target(0, 0).expect("a device"));
    let lines = verdict.lines.as_ref().expect("of the peak");
    let copies = lines.iter().filter(|line| line.does.as_deref() == Some("copies of the logits"));
    let sum: u64 = copies.clone().map(|line| line.bytes.0).sum();
    let categories = || verdict.memory.parts.iter().filter(|part| part.category.is_some());
    let whole: u64 = categories().map(|part| part.bytes.0).sum();
    assert!(copies.count() > 3 && categories().all(|part| part.bytes.0 < sum));
    let text = plain(&verdict.headline);
    let percent = (sum * 100 + whole / 2) / whole;
    assert!(text.contains(&format!(": {percent} % copies of the logits, ")), "{text}");
}
