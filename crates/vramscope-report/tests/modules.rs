//! Memory by module: sums over recordings, and made-up models.

use serde_json::json;
use std::path::{Path, PathBuf};
use vramscope_report::modules::{ModuleRecord, ModulesReport, modules};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::phases::phases;
use vramscope_report::{FileReader, LoadedFile, SnapshotEntry, Target, sidecar, slot_of};
use vramscope_trace::slicing::now;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if [".pickle", ".pickle.gz"]
            .iter()
            .any(|end| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)))
        {
            found.push(path);
        }
    }
}

/// All recordings with their sidecars.
fn recordings() -> Vec<LoadedFile> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data"), &mut found);
    found.sort();
    let load = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let mut reader = FileReader::new(&name, 0);
        reader.feed(&std::fs::read(path).expect("a file")).ok()?;
        let mut file = reader.finish().ok()?;
        let beside = sidecar::path_of(&name).and_then(|beside| std::fs::read(beside).ok());
        if let Some(json) = beside {
            file.entries[0].set_sidecar(&json);
        }
        Some(file)
    };
    let files: Vec<LoadedFile> = found.iter().filter_map(load).collect();
    assert!(files.len() > 150, "{}", files.len());
    files
}

fn targets(entry: &SnapshotEntry) -> impl Iterator<Item = Target<'_>> {
    (0..entry.traces.len()).map(|index| Target { path: &entry.path, entry, index })
}

/// The numbers of a node that are those of its children and, for the first ones, its call sites.
fn numbers(record: &ModuleRecord) -> Vec<u64> {
    let more = [record.event_bytes, record.forward_bytes, record.backward_bytes];
    let more = more.into_iter().chain([record.optimizer_bytes]).map(Option::unwrap_or_default);
    [record.bytes, u64::from(record.blocks)]
        .into_iter()
        .chain(record.categories.0)
        .chain(more)
        .collect()
}

fn check_sums(record: &ModuleRecord) {
    let name = format!("{} / {}", record.path, record.name);
    assert_eq!(record.categories.0.iter().sum::<u64>(), record.bytes, "{name}");
    let sites: u64 = record.sites.iter().map(|site| site.bytes).sum();
    let below: u64 = record.children.iter().map(|child| child.bytes).sum();
    assert_eq!(sites + below, record.bytes, "{name}");
    let blocks: u32 = record.sites.iter().map(|site| site.blocks).sum();
    assert_eq!(blocks + record.children.iter().map(|c| c.blocks).sum::<u32>(), record.blocks);
    for (at, all) in numbers(record).into_iter().enumerate() {
        let below: u64 = record.children.iter().map(|child| numbers(child)[at]).sum();
        assert!(below <= all, "{name}: number {at}");
    }
    assert!(record.children.is_sorted_by_key(|child| std::cmp::Reverse(child.bytes)), "{name}");
    record.children.iter().for_each(check_sums);
}

#[test]
fn modules_add_up_to_the_peak_and_to_the_peaks_of_phases() {
    let (mut modules_seen, mut phases_seen) = (0, 0);
    for file in recordings() {
        for target in file.entries.iter().flat_map(targets) {
            let slots = target.trace().slots();
            let report = modules(target, Some(slots - 1), None);
            let expected = peak(target, BandKind::Requested, None);
            let root = &report.root;
            assert_eq!(root.bytes, expected.total, "{}", target.path);
            assert_eq!((root.blocks, report.peak_event), (expected.blocks, expected.event));
            for share in &expected.categories {
                assert_eq!(root.categories.0[share.category as usize], share.bytes.0);
            }
            assert_eq!(root.event_bytes, Some(target.trace().requested.at(slots - 1)));
            for row in now(async |budget| phases(target, None, budget).await).sum {
                let found = match row.phase {
                    "forward" => root.forward_bytes,
                    "backward" => root.backward_bytes,
                    "optimizer" => root.optimizer_bytes,
                    _ => continue,
                };
                assert_eq!(found, Some(row.peak_bytes), "{}: {}", target.path, row.phase);
                phases_seen += 1;
            }
            check_sums(root);
            modules_seen += root.children.iter().filter(|child| child.basis.is_some()).count();
        }
    }
    assert!(modules_seen > 50 && phases_seen > 50, "{modules_seen} {phases_seen}");
}

/// The largest module with layers.
fn layered(record: &ModuleRecord) -> Option<&ModuleRecord> {
    let below = record.children.iter().filter_map(layered);
    record.layers.map(|_| record).into_iter().chain(below).max_by_key(|record| record.bytes)
}

fn load(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut reader = FileReader::new(name, 0);
    reader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

/// The layers of models whose configuration is known.
#[test]
fn recorded_models_have_their_layers() {
    for (name, layers) in [
        ("recorded/gpt_leak.pickle.gz", 6),
        ("recorded/gpt_amp.pickle.gz", 6),
        ("truth/gpt_step.pickle.gz", 6),
        ("truth/ddp_step.pickle.gz", 3),
    ] {
        let file = load(name);
        let report = modules(file.target(0, 0).expect("a device"), None, None);
        let found = layered(&report.root).unwrap_or_else(|| panic!("{name}: no layers"));
        assert_eq!(found.layers, Some(layers), "{name}: {}", found.path);
        let names: Vec<String> = (0..layers).map(|layer| format!("[{layer}]")).collect();
        let mut of_layers: Vec<&str> = found.children.iter().map(|c| c.name.as_str()).collect();
        of_layers.sort_unstable();
        assert_eq!(of_layers, names, "{name}");
    }
}

/// A frame: file, function, line.
type Line = (&'static str, &'static str, u32);

const CALL: Line = ("/lib/python3/site-packages/torch/nn/modules/module.py", "_call_impl", 1750);
const LINEAR: Line = ("/lib/python3/site-packages/torch/nn/modules/linear.py", "forward", 125);
const BUILD: Line = ("/lib/python3/site-packages/torch/nn/modules/linear.py", "__init__", 106);
const MAIN: Line = ("/train.py", "<module>", 9);

/// Allocations that are never freed: the frames of each, innermost first, and bytes.
fn file(allocations: &[(Vec<Line>, u64)]) -> LoadedFile {
    let event = |(index, (stack, bytes)): (usize, &(Vec<Line>, u64))| {
        let frame =
            |&(file, name, line): &Line| json!({"filename": file, "name": name, "line": line});
        let frames: Vec<_> = stack.iter().map(frame).collect();
        json!({"action": "alloc", "addr": (index + 1) << 24, "size": bytes, "frames": frames})
    };
    let events: Vec<_> = allocations.iter().enumerate().map(event).collect();
    let text = json!({"segments": [], "device_traces": [events]}).to_string();
    let mut reader = FileReader::new("made.json", text.len() as u64);
    reader.feed(text.as_bytes()).expect("JSON of a snapshot");
    reader.finish().expect("a snapshot")
}

fn report(file: &LoadedFile) -> ModulesReport<'_> {
    modules(file.target(0, 0).expect("a device"), None, None)
}

/// A model in `/model.py`: a layer's class has lines 10 to 29, the model's has lines 30 to 49.
struct Model;

impl Model {
    fn called(own: &[Line], line: u32) -> Vec<Line> {
        own.iter().copied().chain([("/model.py", "forward", line), CALL, MAIN]).collect()
    }

    /// Builds layers with two weights each, then a head.
    fn build(layers: usize) -> Vec<(Vec<Line>, u64)> {
        let init = |line| ("/model.py", "__init__", line);
        let layer = |line| (vec![BUILD, init(line), init(31), MAIN], 1000);
        let mut all: Vec<(Vec<Line>, u64)> =
            (0..layers).flat_map(|_| [layer(11), layer(12)]).collect();
        all.push((vec![BUILD, init(32), MAIN], 500));
        all
    }

    /// Calls an embedding, layers, then the head. A layer allocates in a module and on its own.
    fn call(layers: usize) -> Vec<(Vec<Line>, u64)> {
        let forward = |line| ("/model.py", "forward", line);
        let mut all = vec![(Self::called(&[], 40), 1)];
        for _ in 0..layers {
            all.push((Self::called(&[LINEAR, CALL, forward(21), CALL], 41), 100));
            all.push((Self::called(&[forward(22), CALL], 41), 10));
        }
        all.push((Self::called(&[LINEAR, CALL], 42), 7));
        all
    }
}

fn child<'a>(record: &'a ModuleRecord, name: &str) -> &'a ModuleRecord {
    let found = record.children.iter().find(|child| child.name == name);
    found.unwrap_or_else(|| panic!("{name} is none of {:?}", names(record)))
}

fn names(record: &ModuleRecord) -> Vec<&str> {
    record.children.iter().map(|child| child.name.as_str()).collect()
}

#[test]
fn layers_have_what_they_build_and_what_they_call() {
    let file = file(&[Model::build(3), Model::call(3)].concat());
    let report = report(&file);
    assert_eq!(names(&report.root), ["model.py:40-42 forward"]);
    let model = &report.root.children[0];
    assert_eq!((model.basis, model.called_at.as_deref()), (Some("inferred"), Some("train.py:9")));
    let layers = child(model, "model.py:21-22 forward");
    assert_eq!((layers.layers, layers.bytes), (Some(3), 3 * 2110));
    assert_eq!(layers.called_at.as_deref(), Some("model.py:41"));
    assert_eq!(layers.built_at.as_deref(), Some("model.py:31"));
    for (index, layer) in layers.children.iter().enumerate() {
        assert_eq!((layer.name.clone(), layer.bytes), (format!("[{index}]"), 2110));
        assert_eq!(layer.path, format!("{} / {}", layers.path, layer.name));
        // Two modules are built, one is called: nothing tells which.
        let lines: Vec<_> = layer.children.iter().map(|c| (&*c.name, c.bytes)).collect();
        let init = "linear.py:106 __init__";
        assert_eq!(lines, [(init, 1000), (init, 1000), ("linear.py:125 forward", 100)]);
    }
    // One head is built, and one is called.
    let head = child(model, "linear.py:125 forward");
    assert_eq!((head.bytes, head.built_at.as_deref()), (507, Some("model.py:32")));
}

#[test]
fn steps_have_the_same_layers_and_the_end_may_cut_one() {
    let mut all = [Model::call(3), Model::call(3), Model::call(3)].concat();
    all.truncate(all.len() - 4);
    let file = file(&all);
    let report = report(&file);
    let layers = child(&report.root.children[0], "model.py:21-22 forward");
    assert_eq!(layers.layers, Some(3), "{:?}", layers.not_split);
    let bytes: Vec<u64> = layers.children.iter().map(|layer| layer.bytes).collect();
    assert_eq!(bytes, [330, 320, 220]);
}

#[test]
fn calls_that_do_not_agree_are_no_layers() {
    let all = [Model::call(3), Model::call(4), Model::call(3)].concat();
    let file = file(&all);
    let report = report(&file);
    let layers = child(&report.root.children[0], "model.py:21-22 forward");
    assert_eq!((layers.layers, layers.bytes), (None, 1100));
    assert_eq!(layers.not_split, Some("nothing shows that the call around it is one call"));
    assert_eq!(names(layers), ["linear.py:125 forward"]);
}

#[test]
fn calls_in_calls_that_nothing_counts_are_no_layers() {
    // Without embedding and head nothing shows that the model is called once.
    let all = Model::call(3);
    let file = file(&all[1..all.len() - 1]);
    let report = report(&file);
    let layers = child(&report.root.children[0], "model.py:21-22 forward");
    assert_eq!((layers.layers, layers.bytes), (None, 330));
}

#[test]
fn two_modules_on_one_line_are_two_by_their_classes() {
    // `self.mlp(self.norm(x))`: two classes of one file, whose constructors are seen.
    let model = |own: &[Line]| Model::called(own, 80);
    let init = |line| ("/model.py", "__init__", line);
    let forward = |line| ("/model.py", "forward", line);
    let all = [
        (vec![BUILD, init(11), MAIN], 1),
        (vec![BUILD, init(51), MAIN], 1),
        (vec![BUILD, init(71), MAIN], 1),
        (model(&[forward(55), CALL]), 30),
        (model(&[forward(20), CALL]), 20),
    ];
    let file = file(&all);
    let report = report(&file);
    let found = child(&report.root, "model.py:80 forward");
    let rows: Vec<_> = found.children.iter().map(|c| (&*c.name, c.bytes)).collect();
    let expected = [("model.py:55 forward", 31), ("model.py:20 forward", 21)];
    assert_eq!(rows, [&expected[..], &[("linear.py:106 __init__", 1)]].concat());
}

#[test]
fn what_no_module_allocates_is_outside_of_modules() {
    let all = [(vec![MAIN], 5), (vec![], 6), (Model::called(&[], 41), 7)];
    let file = file(&all);
    let report = report(&file);
    let outside = child(&report.root, "outside of modules");
    assert_eq!((outside.basis, outside.bytes), (None, 11));
    let rows: Vec<_> = outside.children.iter().map(|c| (&*c.name, c.bytes)).collect();
    assert_eq!(rows, [("backward", 6), ("other code", 5)]);
}

#[test]
fn a_recording_without_modules_says_so() {
    let file = load("recorded/misc/norecord.pickle");
    let report = report(&file);
    assert!(report.text[0].starts_with("No call stack of this recording"), "{:?}", report.text);
    assert_eq!(names(&report.root), ["outside of modules"]);
}

#[test]
fn recorded_names_are_paths() {
    let mut file = load("beside/exit/rank3_memory_snapshot.pickle");
    let json = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../test_data/beside/exit/rank3_memory_snapshot.vramscope.json");
    file.entries[0].set_sidecar(&std::fs::read(json).expect("the file beside the snapshot"));
    let target = file.target(0, 0).expect("a device");
    let report = modules(target, None, None);
    let named = child(&report.root, "named modules");
    assert_eq!(named.basis, Some("recorded"));
    let mut found = names(named);
    found.sort_unstable();
    assert_eq!(found, ["0", "1", "2"]);
    // Of each tensor with a name that is live at the peak.
    let peak = slot_of(target.trace().requested_band.peak_event);
    let live = target.trace().blocks.iter().zip(0u32..).filter(|(b, _)| b.is_live_at(peak));
    let of_first = live.filter(|(_, index)| {
        target.entry.tensor(0, *index).is_some_and(|tensor| tensor.name.starts_with("0."))
    });
    assert_eq!(child(named, "0").bytes, of_first.map(|(block, _)| block.bytes.0).sum::<u64>());
}
