//! Compares categories with those that the recorded programs themselves wrote down
//! (`test_data/truth`).

use crate::{bytes_of, load};
use serde_json::Value;
use std::collections::BTreeMap;
use vramscope_inference::{Categories, Category, CopyKind, Rules};
use vramscope_trace::slicing::now;
use vramscope_trace::{Origin, Trace};

/// The confusion matrix: bytes by category in the truth file and guessed category.
fn confusion(name: &str) -> BTreeMap<(String, String), u64> {
    let snapshot = load(format!("truth/{name}.pickle.gz"));
    let truth = bytes_of(format!("truth/{name}.truth.json"));
    let truth: Value = serde_json::from_slice(&truth).expect("JSON");
    let trace = &Trace::all(&snapshot)[0];
    let categories =
        now(async |budget| Categories::new(&snapshot, trace, &Rules::default(), budget).await);
    let mut confusion: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (i, block) in (0..).zip(&trace.blocks).filter(|(_, block)| block.leaves == trace.slots()) {
        let address = block.address.0.to_string();
        let is_cache =
            truth["other"][&address].as_str().is_some_and(|words| words.starts_with("kv_cache"));
        let named = if is_cache { Some("cache") } else { truth["blocks"][&address].as_str() };
        let Some(named) = named else { continue };
        let guess = categories.get(i);
        let also = truth["also"][&address].as_array();
        let is_right_too =
            also.is_some_and(|names| names.iter().any(|n| n == guess.category.name()));
        let guess = if is_right_too { named } else { guess.category.name() };
        *confusion.entry((named.to_owned(), guess.to_owned())).or_default() += block.bytes.0;
    }
    // All blocks of the truth file were found.
    for (category, bytes) in truth["requested_bytes"].as_object().expect("bytes by category") {
        let found: u64 = confusion
            .iter()
            .filter(|((named, _), _)| named == category)
            .map(|(_, bytes)| bytes)
            .sum();
        assert_eq!(Some(found), bytes.as_u64(), "{name}: bytes of {category}");
    }
    confusion
}

/// Bytes by category when most bytes are live.
fn at_the_peak(name: &str) -> BTreeMap<&'static str, u64> {
    let snapshot = load(format!("kinds/{name}.pickle.gz"));
    let trace = &Trace::all(&snapshot)[0];
    let categories =
        now(async |budget| Categories::new(&snapshot, trace, &Rules::default(), budget).await);
    let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
    for block in &trace.blocks {
        *changes.entry(block.enters).or_default() += block.bytes.0 as i64;
        *changes.entry(block.leaves).or_default() -= block.bytes.0 as i64;
    }
    let (mut live, mut peak) = (0, (0, 0));
    for (slot, change) in changes {
        live += change;
        if live > peak.0 {
            peak = (live, slot);
        }
    }
    let mut bytes = BTreeMap::new();
    for (i, block) in (0..).zip(&trace.blocks).filter(|(_, block)| block.is_live_at(peak.1)) {
        *bytes.entry(categories.get(i).category.name()).or_default() += block.bytes.0;
    }
    bytes
}

/// The numbers follow from the sizes that were written into the files.
#[test]
fn programs_of_bug_reports_have_their_categories() {
    for (name, expected) in [
        // Of the parameters, 4,203,741,184 bytes are weights that were cast to 32 bits.
        ("kbit_upcast", &[("parameter", 7_848_591_360)][..]),
        ("dpo_reference", &[("parameter", 714_080_256), ("optimizer_state", 714_080_256)]),
        (
            "gradients_moved",
            &[("parameter", 604_078_080), ("gradient", 604_078_080), ("buffer", 3072)],
        ),
        ("data_assigned", &[("parameter", 66_734_080), ("optimizer_state", 133_468_160)]),
    ] {
        let bytes = at_the_peak(name);
        for (category, expected) in expected {
            let found = bytes.get(category).copied().unwrap_or(0);
            let is_near = found.abs_diff(*expected) * 1000 <= *expected;
            assert!(is_near, "{name}: {category}: {found}, not {expected}: {bytes:?}");
        }
    }
}

#[test]
fn casts_of_weights_are_copies() {
    let snapshot = load("kinds/autocast_copies.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let categories =
        now(async |budget| Categories::new(&snapshot, trace, &Rules::default(), budget).await);
    let copies = (0..).zip(&trace.blocks).filter(|(i, _)| {
        categories.copy(*i) == Some(CopyKind::Autocast)
            && categories.get(*i).category.name() == "parameter"
    });
    assert_eq!(copies.map(|(_, block)| block.bytes.0).sum::<u64>(), 1_207_959_552);
}

#[test]
fn at_least_95_percent_of_bytes_get_the_true_category() {
    for name in [
        "gpt_forward",
        "gpt_backward",
        "gpt_step",
        "resnet18_forward",
        "resnet18_backward",
        "resnet18_step",
        "ddp_step",
        "ddp_view_step",
        "compile_inductor_backward",
        "bf16_master_step",
        "zero2_bf16_backward",
        "zero3_bf16_step",
        "inf_catcache",
        "bf16_stochastic",
        "distill",
        "logits_till_next",
        "prefetch_queue",
        "shampoo",
        "speculative",
    ] {
        let confusion = confusion(name);
        let all: u64 = confusion.values().sum();
        let right: u64 = confusion
            .iter()
            .filter(|((named, guess), _)| named == guess)
            .map(|(_, bytes)| bytes)
            .sum();
        assert!(all > 0, "{name}");
        assert!(
            right * 100 >= all * 95,
            "{name}: {right} of {all} bytes are right: {confusion:#?}"
        );
        // Large categories must not hide errors in small ones.
        for category in [
            "parameter",
            "gradient",
            "optimizer_state",
            "buffer",
            "input",
            "communication",
            "cache",
        ] {
            let of = confusion.iter().filter(|((named, _), _)| named == category);
            let (all, right) = of.fold((0, 0), |(all, right), ((_, guess), bytes)| {
                (all + bytes, right + if guess == category { *bytes } else { 0 })
            });
            assert!(
                right * 100 >= all * 90,
                "{name}: {category}: {right} of {all} bytes are right: {confusion:#?}"
            );
        }
    }
}

#[test]
fn blocks_of_the_workspace_allocator_are_workspaces() {
    let snapshot = load("npu/n05_streams.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let categories =
        now(async |budget| Categories::new(&snapshot, trace, &Rules::default(), budget).await);
    let kinds: Vec<_> = (0..)
        .zip(&trace.blocks)
        .filter(|(_, block)| block.origin() == Origin::Workspace)
        .map(|(i, _)| categories.get(i).category)
        .collect();
    assert_eq!(kinds, [Category::Workspace; 2]);
}
