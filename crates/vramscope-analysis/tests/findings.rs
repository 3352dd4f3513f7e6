//! Findings on recordings of known programs: known faults are found, and healthy runs have no
//! findings.

use crate::{load, test_data};
use std::path::PathBuf;
use vramscope_analysis::{
    Facts, Finding, FindingKind, FreeMemory, Growth, Sites, StepSource, Steps, Trace, findings,
};
use vramscope_snapshot::Snapshot;
use vramscope_units::{Bytes, EventIndex};

const MIB: u64 = 1 << 20;

fn recorded(name: &str) -> Snapshot {
    load(format!("recorded/{name}"))
}

fn found(snapshot: &Snapshot) -> Vec<Finding> {
    let sites = Sites::new(snapshot);
    Trace::all(snapshot)
        .iter()
        .flat_map(|trace| findings(snapshot, trace, &sites, &|_| None))
        .collect()
}

fn of_kind(snapshot: &Snapshot, kind: FindingKind) -> Vec<Finding> {
    found(snapshot).into_iter().filter(|f| f.kind() == kind).collect()
}

/// File, line and function of the innermost frame.
fn site(snapshot: &Snapshot, finding: &Finding) -> (String, u32, String) {
    let frame = snapshot.stack(finding.stack.expect("a stack")).next().expect("a frame");
    (snapshot.text(frame.file).into_owned(), frame.line, snapshot.text(frame.name).into_owned())
}

/// Bytes of the logits that the leaking programs keep: 32 tokens per sequence, 50,304 entries of
/// the vocabulary (GPT-2's, padded), 4 bytes per entry.
///
/// These factors and the sequences per batch are inferred from the recorded sizes. The programs'
/// own numbers are not in the recordings.
fn kept_logits(sequences: u64) -> u64 {
    sequences * 32 * 50_304 * 4
}

#[test]
fn growth_finds_logits_kept_in_every_step() {
    let snapshot = recorded("gpt_leak.pickle.gz");
    let growth = of_kind(&snapshot, FindingKind::Growth);
    let [leak] = growth.as_slice() else { panic!("one leak, not {growth:?}") };
    assert_eq!(site(&snapshot, leak), ("/train/p_gpt.py".to_owned(), 31, "train_step".to_owned()));
    // Twelve steps, and eight sequences in each.
    assert_eq!(leak.bytes, 12 * kept_logits(8));
    assert_eq!(leak.events.len(), 12);
    let per_step = Bytes(kept_logits(8));
    let at_end = Bytes(12 * kept_logits(8));
    let kept = Growth::Kept { per_step: (per_step, per_step), every: 1, steps: 12, at_end };
    assert_eq!(leak.facts, Facts::Growth(kept));
    let events = &snapshot.devices[0].events;
    assert!(leak.events.iter().all(|e| snapshot.events.size(events.start + e).0 == kept_logits(8)));
}

#[test]
fn growth_is_found_without_named_ranges() {
    let mut snapshot = recorded("gpt_leak.pickle.gz");
    snapshot.annotations.clear();
    let steps = Steps::find(&snapshot, &Trace::all(&snapshot)[0]).expect("steps");
    // Twelve beginnings bound eleven whole steps.
    assert_eq!((steps.source, steps.whole()), (StepSource::Periodicity, 11));
    let growth = of_kind(&snapshot, FindingKind::Growth);
    assert_eq!(growth.iter().map(|f| f.bytes).collect::<Vec<_>>(), [12 * kept_logits(8)]);
}

#[test]
fn growth_is_found_in_the_leaking_rank_only() {
    let leaking = recorded("ranks_fsdp/rank3_memory_snapshot.pickle.gz");
    let growth = of_kind(&leaking, FindingKind::Growth);
    let [leak] = growth.as_slice() else { panic!("one leak, not {growth:?}") };
    assert_eq!(site(&leaking, leak), ("/train/p_fsdp.py".to_owned(), 27, "<module>".to_owned()));
    // Six steps, with batches of 11, 8, 9, 10, 11 and 8 sequences.
    assert_eq!(leak.bytes, [11, 8, 9, 10, 11, 8].map(kept_logits).iter().sum::<u64>());
    let Facts::Growth(Growth::Kept { per_step, every, steps, .. }) = &leak.facts else {
        panic!("blocks that are kept, not {leak:?}")
    };
    assert_eq!((*every, *steps), (1, 6));
    assert_eq!(*per_step, (Bytes(kept_logits(8)), Bytes(kept_logits(11))));
    let healthy = recorded("ranks_fsdp/rank2_memory_snapshot.pickle.gz");
    assert_eq!(of_kind(&healthy, FindingKind::Growth), []);
}

#[test]
fn healthy_recordings_have_no_growth() {
    let mut count = 0;
    for folder in ["", "t20", "t26", "t29", "misc"] {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(test_data().join("recorded").join(folder))
            .expect("the folder is there")
            .map(|e| e.expect("it can be listed").path())
            .filter(|p| p.extension().is_some_and(|e| e == "pickle" || e == "gz"))
            .filter(|p| !p.ends_with("gpt_leak.pickle.gz"))
            .collect();
        paths.sort();
        for path in paths {
            let mut snapshot = load(&path);
            for named in [true, false] {
                if !named {
                    snapshot.annotations.clear();
                }
                let found = found(&snapshot);
                let wrong = [FindingKind::Growth, FindingKind::NeverFreed];
                assert!(
                    !found.iter().any(|f| wrong.contains(&f.kind())),
                    "{}: {found:#?}",
                    path.display()
                );
                // One recording uses record_stream.
                let uses_streams = path.to_string_lossy().contains("streams.");
                assert_eq!(
                    found.iter().any(|f| f.kind() == FindingKind::PendingFree),
                    uses_streams,
                    "{}",
                    path.display()
                );
                count += 1;
            }
        }
    }
    assert!(count > 60, "only {count} recordings were checked");
}

#[test]
fn oom_has_request_free_memory_and_holders() {
    let snapshot = recorded("t26/oom_observer.pickle.gz");
    let sites = Sites::new(&snapshot);
    let trace = &Trace::all(&snapshot)[0];
    let free = |slot| Some(FreeMemory { free: u64::from(slot), largest: 5 * MIB });
    let found = findings(&snapshot, trace, &sites, &free);
    let ooms: Vec<&Finding> = found.iter().filter(|f| f.kind() == FindingKind::Oom).collect();
    let [oom] = ooms.as_slice() else { panic!("one OOM, not {ooms:?}") };
    // PyTorch's OOM observer got a request of 413,138,944 bytes and 71,303,168 bytes free. The
    // event has the request before it is rounded to 2 MiB.
    assert_eq!(
        (oom.bytes, oom.id.as_str(), oom.events.as_slice()),
        (412_090_368, "oom-0-7396", [7396].as_slice())
    );
    let Facts::Oom { requested, device_free, reserved, largest_free, holders, .. } = &oom.facts
    else {
        panic!("an OOM, not {oom:?}")
    };
    assert_eq!((*requested, *device_free), (Bytes(412_090_368), Some(Bytes(71_303_168))));
    assert_eq!(reserved.to_string(), "5.45 GiB");
    assert_eq!(*largest_free, Some(Bytes(5 * MIB)));
    let frame = sites.get(holders[0].0).frame.expect("a frame");
    let place = (snapshot.text(frame.file).into_owned(), frame.line);
    assert_eq!(place, ("/train/p_oom.py".to_owned(), 19));
    assert_eq!(of_kind(&recorded("oom_expandable.pickle.gz"), FindingKind::Oom).len(), 5);
}

#[test]
fn pending_frees_of_one_stream_are_one_finding() {
    let snapshot = recorded("t26/streams.pickle.gz");
    let pending = of_kind(&snapshot, FindingKind::PendingFree);
    let [pending] = pending.as_slice() else { panic!("one group, not {pending:?}") };
    let Facts::PendingFree(waits) = &pending.facts else { panic!("{pending:?}") };
    assert_eq!((waits.longest_events, waits.longest_from), (105, EventIndex(1385)));
}
