//! Analyses in slices: results equal those without slices, and the number of slices grows with the
//! work.

use std::collections::BTreeMap;
use std::sync::Arc;
use vramscope_inference::{Categories, Passes, Rules, StepPhases, Steps, findings};
use vramscope_snapshot::{PoolIndex, Snapshot};
use vramscope_trace::slicing::{Budget, SlicedTask, now, run_to_completion};
use vramscope_trace::{
    Carving, Flame, Fragmentation, FreeKind, LiveSet, Measure, Trace, by_stack, free_shares,
    largest_free, peaks, pool_envelope,
};

const FILES: [&str; 6] = [
    "recorded/t26/gpt_small.pickle.gz",
    "recorded/t26/pools.pickle",
    "recorded/t26/oom_observer.pickle.gz",
    "recorded/gpt_late.pickle.gz",
    "edge/segments_only.pickle",
    "edge/no_time.pickle",
];

struct Loaded {
    snapshot: Snapshot,
    trace: Trace,
    carving: Carving,
}

fn load(name: &str) -> Arc<Loaded> {
    let snapshot = crate::load(name);
    let trace = Trace::all(&snapshot).remove(0);
    let carving = now(async |budget| Carving::new(&snapshot, &trace, budget).await);
    Arc::new(Loaded { snapshot, trace, carving })
}

/// Runs a task in slices. Returns the number of slices and the result.
fn run_sliced<T, F: Future<Output = T> + Send + 'static>(begin: impl Fn() -> F) -> (u64, T) {
    let mut work = SlicedTask::default();
    let mut slices = 0;
    while !work.advance(&begin) {
        slices += 1;
    }
    let SlicedTask::Done(done) = work else { panic!("the task is finished") };
    (slices, done)
}

/// Checks that work of at least `min_units` units took enough slices of `slice` units. A slice can
/// be longer by one stride of items that cost up to 24 units each.
fn assert_slices(name: &str, what: &str, slices: u64, slice: u64, min_units: usize) {
    let min_slices = min_units as u64 / (slice + 24 * (1 << 12));
    assert!(slices > min_slices, "{name}: {what} of {min_units} units in {slices} slices");
}

#[test]
fn sliced_tables_equal_unsliced_ones() {
    for name in FILES {
        let file = load(name);
        let Loaded { snapshot, trace, carving } = &*file;
        let (events, blocks) = (trace.device.events.len(), trace.blocks.len());
        for slice in [1, 1 << 13] {
            let (slices, made) = run_sliced(|| {
                let file = file.clone();
                async move {
                    let budget = &mut Budget::of(slice);
                    Carving::new(&file.snapshot, &file.trace, budget).await
                }
            });
            assert!(format!("{made:?}") == format!("{carving:?}"), "{name}: block sizes");
            // Two passes over segment events, the replay and two sums over events. One pass over
            // blocks.
            assert_slices(name, "block sizes", slices, slice, 8 * events + 4 * blocks);
            let (slices, made) = run_sliced(|| {
                let file = file.clone();
                async move {
                    let rules = Rules::default();
                    Categories::new(&file.snapshot, &file.trace, &rules, &mut Budget::of(slice))
                        .await
                }
            });
            let whole = now(async |budget| {
                Categories::new(snapshot, trace, &Rules::default(), budget).await
            });
            for block in 0..blocks as u32 {
                assert_eq!(made.get(block), whole.get(block), "{name}: block {block}");
            }
            assert_slices(name, "categories", slices, slice, events + 15 * blocks);
            let steps =
                now(async |budget| Steps::find(snapshot, trace, whole.phases(), budget).await);
            let (slices, made) = run_sliced(|| {
                let (file, categories, steps) = (file.clone(), whole.clone(), steps.clone());
                async move {
                    let Loaded { snapshot, trace, .. } = &*file;
                    let budget = &mut Budget::of(slice);
                    let steps = steps.as_ref();
                    let passes = Passes::find(snapshot, trace, &categories, steps, budget).await;
                    let parts = &passes.parts;
                    let phases =
                        StepPhases::new(snapshot, trace, &categories, steps, parts, budget).await;
                    (passes.all, phases)
                }
            });
            let found = now(async |budget| {
                let steps = steps.as_ref();
                let passes = Passes::find(snapshot, trace, &whole, steps, budget).await;
                let parts = &passes.parts;
                let phases = StepPhases::new(snapshot, trace, &whole, steps, parts, budget).await;
                (passes.all, phases)
            });
            assert!(made == found, "{name}: phases of steps");
            let counted = if found.1.phases.is_empty() { 0 } else { 6 * events };
            assert_slices(name, "phases of steps", slices, slice, counted);
            let (slices, made) = run_sliced(|| {
                let file = file.clone();
                async move {
                    pool_envelope(
                        &file.trace,
                        &file.carving,
                        &file.snapshot,
                        &mut Budget::of(slice),
                    )
                    .await
                }
            });
            assert!(
                made == now(async |budget| pool_envelope(trace, carving, snapshot, budget).await),
                "{name}: pools"
            );
            assert_slices(
                name,
                "pools",
                slices,
                slice,
                if made.is_some() { events } else { blocks },
            );
            let (slices, made) = run_sliced(|| {
                let file = file.clone();
                async move {
                    let budget = &mut Budget::of(slice);
                    file.trace.reserved(&file.snapshot, budget).await
                }
            });
            assert!(
                made == now(async |budget| trace.reserved(snapshot, budget).await),
                "{name}: reserved bytes"
            );
            assert_slices(name, "reserved bytes", slices, slice, events);
        }
        assert_eq!(
            run_to_completion(trace.reserved(snapshot, &mut Budget::of(1))),
            now(async |budget| trace.reserved(snapshot, budget).await)
        );
    }
}

#[test]
fn sliced_findings_and_rollups_equal_unsliced_ones() {
    let mut found = 0;
    for name in
        FILES.into_iter().chain(["recorded/gpt_leak.pickle.gz", "recorded/gpt_max_split.pickle.gz"])
    {
        let file = load(name);
        let Loaded { snapshot, trace, carving } = &*file;
        let (events, blocks) = (trace.device.events.len(), trace.blocks.len());
        let free = now(async |budget| Fragmentation::new(snapshot, trace, carving, budget).await);
        let device = Arc::new(crate::Device::new(crate::load(name)));
        let whole = device.findings();
        found += whole.len();
        for slice in [1, 1 << 13] {
            let (slices, made) = run_sliced(|| {
                let device = device.clone();
                async move { findings(device.evidence(), &mut Budget::of(slice)).await }
            });
            assert_eq!(made, whole, "{name}: findings");
            assert_slices(name, "findings", slices, slice, events + 6 * blocks);
            let (slices, made) = run_sliced(|| {
                let file = file.clone();
                async move {
                    Fragmentation::new(
                        &file.snapshot,
                        &file.trace,
                        &file.carving,
                        &mut Budget::of(slice),
                    )
                    .await
                }
            });
            assert!(
                made.free == free.free && made.largest == free.largest && made.churn == free.churn,
                "{name}: free"
            );
            assert_slices(name, "free memory", slices, slice, 16 * events);
            // Of each kind as the layout of the segments has it, and at most that of all.
            let budget = &mut Budget::of(slice);
            let kinds = run_to_completion(largest_free(snapshot, trace, carving, budget));
            assert_eq!(
                kinds,
                now(async |budget| largest_free(snapshot, trace, carving, budget).await),
                "{name}: largest free"
            );
            for slot in (0..trace.slots()).step_by(trace.slots() as usize / 40 + 1) {
                let most = kinds.iter().map(|kind| kind.at(slot).0).max().unwrap_or(0);
                assert_eq!(most, free.largest.at(slot), "{name}: largest free in slot {slot}");
                let mut expected = BTreeMap::new();
                for share in free_shares(
                    &now(async |budget| LiveSet::new(trace, slot, budget).await).segments(carving),
                ) {
                    let known = share.kind.pool != PoolIndex::UNKNOWN;
                    let pool = if known { share.kind.pool } else { PoolIndex(0) };
                    let largest = expected.entry(FreeKind { pool, ..share.kind }).or_default();
                    *largest = share.largest.max(*largest);
                }
                for of in &kinds {
                    let expected = expected.remove(&of.kind).unwrap_or_default();
                    assert_eq!(of.at(slot), expected, "{name}: {:?}, slot {slot}", of.kind);
                }
                assert!(expected.is_empty(), "{name}: {expected:?} in slot {slot}");
            }
            let budget = &mut Budget::of(slice);
            assert_eq!(
                run_to_completion(Steps::find(snapshot, trace, device.categories.phases(), budget)),
                device.steps,
                "{name}: steps"
            );
            let min_prominence = trace.requested_band.peak.max(0) as u64 / 50;
            assert_eq!(
                run_to_completion(peaks(&trace.requested, 5, min_prominence, budget)),
                now(async |budget| peaks(&trace.requested, 5, min_prominence, budget).await),
                "{name}: peaks"
            );
            let weight = |i| Measure::ByteTime.of(trace, carving, i);
            let shares = now(async |budget| by_stack(trace, weight, budget).await);
            assert_eq!(
                run_to_completion(by_stack(trace, weight, budget)),
                shares,
                "{name}: shares"
            );
            let mut path_of = |share: &_, path: &mut Vec<_>| {
                let share: &vramscope_trace::Share = share;
                path.extend(snapshot.stacks.frames(share.stack).iter().rev().copied().map(Some));
            };
            assert_eq!(
                run_to_completion(Flame::with_paths(&shares, &mut path_of, budget)),
                now(async |budget| Flame::new(snapshot, &shares, budget).await),
                "{name}"
            );
            for slot in [0, trace.slots() / 2, trace.slots() - 1] {
                let (sliced, plain) = (
                    run_to_completion(LiveSet::new(trace, slot, budget)),
                    now(async |budget| LiveSet::new(trace, slot, budget).await),
                );
                assert_eq!(sliced.blocks(), plain.blocks(), "{name}: slot {slot}");
            }
        }
    }
    assert!(found > 2, "{found} findings in all");
}
