//! Ascend NPUs: files that a simulation of `torch_npu`'s allocators wrote
//! (`scripts/testdata/npu.py`), and the kinds of all other files.

use crate::{bytes_of, load, test_data};
use serde_json::Value;
use std::path::{Path, PathBuf};
use vramscope_snapshot::{Action, DeviceKind, Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Band, Block, Carving, Coverage, Exactness, Origin, Trace};

fn carve(snapshot: &Snapshot, trace: &Trace) -> Carving {
    now(async |budget| Carving::new(snapshot, trace, budget).await)
}

/// Start, peak, peak event (-1 for the state before the window) and end.
fn figures(band: Band) -> [i64; 4] {
    [band.start, band.peak, band.peak_event.map_or(-1, i64::from), band.end]
}

/// The files with the devices that they must read as.
fn files() -> Vec<(String, Value)> {
    let expected: Value =
        serde_json::from_slice(&bytes_of("npu/expected.json")).expect("the numbers are JSON");
    let files = expected.as_object().expect("a dict").clone();
    assert_eq!(files.len(), 20);
    files.into_iter().collect()
}

#[test]
fn bands_are_exact_and_kinds_are_told() {
    for (name, devices) in files() {
        let snapshot = load(format!("npu/{name}"));
        assert!(snapshot.report.warnings().is_empty(), "{name}: {:?}", snapshot.report.warnings());
        let devices = devices.as_array().expect("a list");
        assert_eq!(snapshot.devices.len(), devices.len(), "{name}");
        for (trace, expected) in Trace::all(&snapshot).iter().zip(devices) {
            let carving = carve(&snapshot, trace);
            let exactness = [trace.exactness, trace.reserved_exactness(), carving.exactness];
            let warnings = [trace.warnings.as_slice(), &carving.warnings].concat();
            assert_eq!((exactness, warnings), ([Exactness::Exact; 3], Vec::new()), "{name}");
            assert_eq!(trace.device.kind, DeviceKind::Npu, "{name}");
            assert_eq!(snapshot.padding.0, expected["padding"], "{name}");
            assert_eq!(trace.device.events.len(), expected["events"], "{name}");
            for (band, of) in [
                ("requested", trace.requested_band),
                ("active", carving.active_band),
                ("allocated", carving.allocated_band),
                ("reserved", trace.reserved_band),
            ] {
                let expected = &expected["bands"][band];
                assert_eq!(Value::from(figures(of).to_vec()), *expected, "{name} {band}");
            }
        }
    }
}

#[test]
fn workspaces_are_memory_from_before_the_window() {
    let snapshot = load("npu/n05_streams.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    // Two workspaces: three events each, in front of the trace.
    let actions: Vec<Action> = (0..6).map(|row| snapshot.events.action(row)).collect();
    let three = [Action::WORKSPACE_SNAPSHOT, Action::WORKSPACE_SEGMENT, Action::WORKSPACE_ALLOC];
    assert_eq!(actions, [three, three].concat());
    let names = |actions: &[Action]| -> Vec<String> {
        actions.iter().map(|&action| snapshot.action_name(action).into_owned()).collect()
    };
    assert_eq!(names(&three), ["workspace_snapshot", "segment_alloc", "alloc"]);
    for slot in 0..7 {
        assert!(trace.changes_at(slot).iter().all(|change| change.enters() && slot == 0));
    }
    let allocs = (0..snapshot.events.len() as u32)
        .filter(|&row| snapshot.events.action(row) == Action::ALLOC)
        .count();
    assert_eq!(trace.allocations_in_window as usize, allocs);
    let before: Vec<_> = trace.blocks.iter().filter(|b| b.is_preexisting()).collect();
    let of = |block: &&Block| (block.origin(), block.bytes.0);
    let before: Vec<_> = before.iter().map(of).collect();
    assert_eq!(before, [(Origin::Workspace, 1 << 20), (Origin::Workspace, 3 << 20)]);
    assert_eq!((trace.preexisting_live, trace.coverage), (0, Coverage::Whole));
}

#[test]
fn a_part_has_the_requested_bytes_of_the_whole() {
    for name in ["npu/n03_expandable.pickle.gz", "npu/n10_retries.pickle.gz"] {
        let whole = Trace::all(&load(name)).remove(0);
        let range = 200..300;
        let mut reader = Reader::for_event_range(range.clone());
        reader.feed(&bytes_of(name)).expect("a snapshot");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let part = Trace::all(&snapshot).remove(0);
        let excerpt = part.device.excerpt.clone().expect("a part");
        assert_eq!(part.device.kind, DeviceKind::Npu);
        let values = |trace: &Trace, first: u32| -> Vec<u64> {
            trace.requested.values(first..first + range.len() as u32 + 1).collect()
        };
        assert_eq!(values(&part, excerpt.before), values(&whole, range.start), "{name}");
    }
}

/// The files below a folder.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() { below(&path, found) } else { found.push(path) }
    }
}

#[test]
fn no_other_file_is_of_an_npu() {
    let mut paths = Vec::new();
    below(&test_data(), &mut paths);
    let mut read = 0;
    for path in paths.iter().filter(|path| !path.starts_with(test_data().join("npu"))) {
        let mut reader = Reader::default();
        if reader.feed(&std::fs::read(path).expect("a file")).is_err() {
            continue;
        }
        for named in reader.finish().unwrap_or_default() {
            read += 1;
            assert_eq!(named.snapshot.padding.0, 0, "{}", path.display());
            for device in &named.snapshot.devices {
                let kind = if device.device == vramscope_snapshot::HOST {
                    DeviceKind::Host
                } else {
                    DeviceKind::Cuda
                };
                assert_eq!(device.kind, kind, "{}", path.display());
            }
        }
    }
    assert!(read > 250, "{read} snapshots were read");
}
