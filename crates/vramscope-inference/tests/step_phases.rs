//! Peaks of phases on recordings: they are those of the whole window, cut into parts.

use crate::{Device, bytes_of, load, test_data};
use vramscope_inference::{Category, NextStep, StepPhase, StepPhases};
use vramscope_snapshot::Reader;
use vramscope_trace::slicing::now;

fn phases(device: &Device) -> StepPhases {
    let Device { snapshot, trace, categories, steps, passes, .. } = device;
    let (steps, parts) = (steps.as_ref(), &passes.parts);
    now(async |budget| StepPhases::new(snapshot, trace, categories, steps, parts, budget).await)
}

/// The snapshots in some folders of `test_data`.
fn recordings() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["edge", "scenarios", "recorded", "recorded/t20", "recorded/t26", "truth"] {
        let entries = std::fs::read_dir(test_data().join(folder)).expect("a folder of test_data");
        let names = entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8"));
        let snapshots = names.filter(|n| n.ends_with(".pickle") || n.ends_with(".pickle.gz"));
        files.extend(snapshots.map(|name| format!("{folder}/{name}")));
    }
    files.sort_unstable();
    files
}

#[test]
fn each_peak_is_the_largest_value_of_its_slots_and_the_sum_of_its_live_blocks() {
    let mut with_phases = 0;
    for file in recordings() {
        let snapshot = load(&file);
        if snapshot.devices.is_empty() {
            continue;
        }
        let device = Device::new(snapshot);
        let trace = &device.trace;
        let found = phases(&device);
        let mut end = 0;
        for part in &found.phases {
            assert_eq!(part.begin, end, "{file}: phases touch each other");
            assert!(part.begin < part.end, "{file}: a phase has events");
            end = part.end;
            let first = if part.begin == 0 { 0 } else { part.begin + 1 };
            let largest = trace.requested.largest(first..part.end + 1);
            assert_eq!(largest, Some((part.slot, part.bytes)), "{file}: {part:?}");
            let mut categories = [0; Category::ALL.len()];
            let live = |b: &vramscope_trace::Block| b.is_live_at(part.slot);
            let mut blocks = 0;
            for (i, block) in (0..).zip(&trace.blocks).filter(|(_, block)| live(block)) {
                categories[device.categories.get(i).category as usize] += block.bytes.0;
                blocks += 1;
            }
            assert_eq!((part.categories, part.blocks), (categories, blocks), "{file}: {part:?}");
            assert_eq!(categories.iter().sum::<u64>(), part.bytes, "{file}: {part:?}");
            for slot in first..=part.end {
                assert_eq!(found.at(slot), Some(part), "{file}: slot {slot}");
            }
            let allocated = part.set_by.map(|block| trace.blocks[block as usize]);
            assert!(allocated.is_none_or(|b| b.alloc_event().is_some() && b.enters <= part.slot));
        }
        if found.phases.is_empty() {
            continue;
        }
        with_phases += 1;
        assert_eq!(end, trace.device.events.len() as u32, "{file}: phases cover the window");
        let peak = found.phases.iter().map(|part| part.bytes as i64).max();
        assert_eq!(peak, Some(trace.requested_band.peak), "{file}");
        let growth: i64 = found.phases.iter().map(|part| part.reserved_growth).sum();
        let band = trace.reserved_band;
        assert_eq!(growth, band.end - band.start, "{file}: reserved_bytes");
    }
    assert!(with_phases > 20, "{with_phases} recordings have phases");
}

/// The estimate from the first step alone, and the recorded peak of the second step. The file is
/// read up to the end of its first step.
fn estimated_and_recorded(file: &str) -> (NextStep, u64) {
    let whole = Device::new(load(file));
    let steps = whole.steps.as_ref().unwrap_or_else(|| panic!("{file}: steps"));
    assert!(steps.whole() > 1, "{file}: two steps");
    let second = phases(&whole).phases;
    let second = second.iter().filter(|part| part.step == Some(1)).map(|part| part.bytes).max();
    let mut reader = Reader::for_event_range(0..steps.begins[1]);
    reader.feed(&bytes_of(file)).expect("a snapshot");
    let first = reader.finish().expect("a snapshot").remove(0).snapshot;
    let next = phases(&Device::new(first)).next;
    let next = next.unwrap_or_else(|| panic!("{file}: the first step shows the second"));
    (next, second.expect("a second step"))
}

#[test]
fn the_first_step_shows_the_peak_of_a_second_step_that_repeats_it() {
    for file in [
        "truth/gpt_step.pickle.gz",
        "truth/resnet18_step.pickle.gz",
        "recorded/t20/resnet50_ok.pickle.gz",
        "findings/non_accum_late.pickle.gz",
        "findings/non_ema.pickle.gz",
        "findings/non_ppo.pickle.gz",
    ] {
        let (next, recorded) = estimated_and_recorded(file);
        let peak = next.peak().expect("a phase");
        assert!(next.new_state > 0, "{file}");
        assert!(peak.bytes.abs_diff(recorded) < 4096, "{file}: {peak:?}, recorded {recorded}");
    }
}

#[test]
fn windows_that_show_no_first_step_have_no_estimate() {
    // A late start, no optimizer, and no training at all.
    for file in [
        "recorded/gpt_late.pickle.gz",
        "recorded/t26/linear_seed_python.pickle",
        "findings/c1_llama7b_inference.pickle.gz",
    ] {
        assert_eq!(phases(&Device::new(load(file))).next, None, "{file}");
    }
}

#[test]
fn an_out_of_memory_step_is_listed_as_the_step_that_was_cut_off() {
    let device = Device::new(load("recorded/t26/oom_observer.pickle.gz"));
    let oom = device.trace.ooms.last().expect("an OOM").event.0;
    let found = phases(&device);
    let whole = device.steps.as_ref().expect("steps").whole() as u32;
    let part = found.at(oom + 1).expect("a phase");
    assert_eq!((part.step, part.phase), (Some(whole), StepPhase::Backward));
}
