use super::{GroupKind, Groups};
use crate::{FileReader, LoadedFile, Target};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use vramscope_trace::slicing::now;

/// A frame of a model: file, function, line.
type Line = (&'static str, &'static str, u32);

const CALL: Line = ("/lib/python3/site-packages/torch/nn/modules/module.py", "_call_impl", 1750);
const MAIN: Line = ("/train.py", "<module>", 9);
const MODEL: Line = ("/model.py", "forward", 70);
const HEAD: Line = ("/model.py", "forward", 80);
const LAYER: Line = ("/model.py", "forward", 50);
const MLP: Line = ("/model.py", "forward", 20);
const ATTENTION: Line = ("/model.py", "forward", 30);

/// A file with allocations that are never freed: the frames of each, innermost first, and bytes.
fn file(allocations: &[(Vec<Line>, u64)]) -> LoadedFile {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    for (index, (stack, bytes)) in allocations.iter().enumerate() {
        let frames: Vec<String> = stack
            .iter()
            .map(|(file, name, line)| {
                format!("{{\"filename\":\"{file}\",\"name\":\"{name}\",\"line\":{line}}}")
            })
            .collect();
        let comma = if index == 0 { "" } else { "," };
        write!(
            json,
            "{comma}{{\"action\":\"alloc\",\"addr\":{},\"size\":{bytes},\"frames\":[{}]}}",
            (index + 1) << 24,
            frames.join(",")
        )
        .expect("writing to a String cannot fail");
    }
    json.push_str("]]}");
    let mut reader = FileReader::new("made.json", json.len() as u64);
    reader.feed(json.as_bytes()).expect("JSON of a snapshot");
    reader.finish().expect("a snapshot")
}

/// The names of groups with their bytes.
fn groups(file: &LoadedFile, kind: GroupKind) -> BTreeMap<String, u64> {
    let target = Target { path: "", entry: &file.entries[0], index: 0 };
    let groups = now(async |budget| Groups::new(target, kind, budget).await);
    let mut bytes = BTreeMap::new();
    for (block, &group) in target.trace().blocks.iter().zip(&groups.of_block) {
        let names = groups.groups[group as usize].names(target);
        assert!(names.windows(2).all(|pair| pair[0].len() > pair[1].len()), "{names:?}");
        *bytes.entry(names.last().expect("a name").clone()).or_default() += block.bytes.0;
    }
    bytes
}

/// Steps of a model: per layer two allocations in the MLP, one in attention and one of its own,
/// then one of the head.
fn steps(layers: &[usize]) -> LoadedFile {
    let mut all = Vec::new();
    for &count in layers {
        for _ in 0..count {
            for line in [20, 21] {
                let mlp = (MLP.0, MLP.1, line);
                all.push((vec![mlp, CALL, (LAYER.0, LAYER.1, 51), CALL, MODEL, CALL, MAIN], 100));
            }
            all.push((vec![ATTENTION, CALL, LAYER, CALL, MODEL, CALL, MAIN], 10));
            all.push((vec![(LAYER.0, LAYER.1, 55), CALL, MODEL, CALL, MAIN], 1));
        }
        all.push((vec![HEAD, CALL, MAIN], 1000));
    }
    file(&all)
}

fn expected<const N: usize>(rows: [(&str, u64); N]) -> BTreeMap<String, u64> {
    rows.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

#[test]
fn lines_have_their_places() {
    let found = groups(&steps(&[4]), GroupKind::Line);
    let lines = [
        ("model.py:20", 400),
        ("model.py:21", 400),
        ("model.py:30", 40),
        ("model.py:55", 4),
        ("model.py:80", 1000),
    ];
    assert_eq!(found, expected(lines));
}

#[test]
fn modules_have_the_layers_that_call_them() {
    // Three steps of a model with four layers. The line that calls a module names it.
    let found = groups(&steps(&[4, 4, 4]), GroupKind::Module);
    let modules = [
        ("layers 0-3 · model.py:50", 120),
        ("layers 0-3 · model.py:51", 2400),
        ("layers 0-3 · model.py:70", 12),
        ("model.py", 3000),
    ];
    assert_eq!(found, expected(modules));
}

#[test]
fn unequal_steps_prove_no_layers() {
    // The last step ends in the third layer.
    let mut total = 0;
    let file = steps(&[4, 4, 3]);
    for block in &file.entries[0].traces[0].blocks {
        total += block.bytes.0;
    }
    assert_eq!(groups(&file, GroupKind::Module), expected([("model.py", total)]));
}

#[test]
fn groups_are_ordered_by_category_then_by_first_block() {
    let file = steps(&[4]);
    let target = Target { path: "", entry: &file.entries[0], index: 0 };
    for kind in [GroupKind::Category, GroupKind::Line, GroupKind::Module] {
        let found = now(async |budget| Groups::new(target, kind, budget).await);
        let rank = |group: u32| {
            let category = found.groups[group as usize].category;
            super::STACKED.iter().position(|&of| of == category)
        };
        let categories = target.entry.categories(target.index);
        let mut first = vec![usize::MAX; found.groups.len()];
        for (block, &group) in found.of_block.iter().enumerate() {
            first[group as usize] = first[group as usize].min(block);
            assert_eq!(
                categories.get(block as u32).category,
                found.groups[group as usize].category
            );
        }
        for group in 1..found.groups.len() as u32 {
            let key = |group: u32| (rank(group), first[group as usize]);
            assert!(key(group - 1) < key(group), "{kind:?}: group {group}");
        }
    }
}
