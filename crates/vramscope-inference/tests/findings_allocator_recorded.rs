//! Findings about the allocator on recordings of known programs.

use crate::{Device, load};
use vramscope_inference::{
    Aftermath, Basis, Context, CostlySetting, Facts, Finding, FindingKind, OomStory, Phase,
    Severity, Verdict,
};
use vramscope_units::Bytes;

const MIB: u64 = 1 << 20;

fn recorded(path: &str) -> Device {
    Device::new(load(path))
}

/// The findings about failed allocations, first failure first.
fn stories(device: &Device) -> Vec<(Finding, OomStory)> {
    let mut stories: Vec<(Finding, OomStory)> = (device.of_kind(FindingKind::Oom).into_iter())
        .map(|finding| match finding.facts.clone() {
            Facts::Oom(story) => (finding, *story),
            facts => panic!("{facts:?}"),
        })
        .collect();
    stories.sort_by_key(|(finding, _)| finding.events[0]);
    stories
}

/// Batches of 1, 2 and 4 sequences on a device with 5,644 MiB for PyTorch. A simulation of the
/// allocator says that the run needs 326 MiB more.
#[test]
fn the_story_of_a_failed_backward_pass() {
    let device = recorded("recorded/t26/oom_observer.pickle.gz");
    let stories = stories(&device);
    let [(finding, story)] = stories.as_slice() else { panic!("one finding, not {stories:?}") };
    assert_eq!((finding.step, finding.phase), (Some(2), Some(Phase::Backward)));
    assert_eq!((finding.bytes, finding.basis), (393 * MIB, Basis::Exact));
    assert_eq!(story.room, Some(Bytes(5644 * MIB)));
    assert_eq!(story.segment_lacks(), Some(Bytes(326 * MIB)));
    assert_eq!((story.verdict, story.excess()), (Verdict::Fragmentation, None));
    let flush = story.flush.expect("a flush");
    assert_eq!((flush.segments, flush.bytes), (11, Bytes(22 * MIB)));
    let larger = story.larger.expect("the batch is twice as large");
    assert_eq!((larger.before.0 * 2, larger.step), (larger.bytes.0, Some(1)));
    let lines: Vec<u32> = (story.twins.iter())
        .filter_map(|&stack| device.sites.get(stack).frame.map(|frame| frame.line))
        .collect();
    assert_eq!(lines, [43, 44], "the logits and their log-softmax");
    assert_eq!(device.of_kind(FindingKind::Churn), []);
}

/// Five failures, four of them in one step. The first asks for less than later ones.
#[test]
fn failures_of_one_step_are_one_story() {
    let device = recorded("recorded/oom_expandable.pickle.gz");
    let stories = stories(&device);
    let told: Vec<_> =
        stories.iter().map(|(_, s)| (s.event.0, s.failures, s.requested.0 / MIB)).collect();
    assert_eq!(told, [(7386, 1, 393), (10906, 4, 24)]);
    let (bytes, _) = stories[0].1.kept.expect("the exception keeps the step");
    assert!(bytes > Bytes(2 << 30), "{bytes}");
}

#[test]
fn free_memory_of_a_private_pool_is_no_fragmentation() {
    let device = recorded("findings/s1_pool_strand.pickle.gz");
    let stories = stories(&device);
    let [(_, story)] = stories.as_slice() else { panic!("one finding, not {stories:?}") };
    assert_eq!((story.verdict, story.usable), (Verdict::StrandedPool, Bytes(0)));
    assert_eq!(story.unusable[0].free, Bytes(9000 * MIB));
    assert_eq!(device.findings().len(), 1, "one cause makes one finding");
}

#[test]
fn rounding_that_makes_a_request_fail_is_named() {
    let device = recorded("findings/varlen_tight_roundup.pickle.gz");
    let (_, story) = stories(&device).remove(0);
    assert_eq!(story.verdict, Verdict::Demand);
    let [CostlySetting::RoundupPower2Divisions { bytes }] = story.settings.as_slice() else {
        panic!("{:?}", story.settings)
    };
    assert!(*bytes > story.excess().expect("too little room"), "without it the request fits");
}

#[test]
fn reserved_memory_of_recordings() {
    for (path, severity, mib, setting) in [
        ("findings/c17_state_only_crumbs.pickle.gz", Severity::Low, 6800, false),
        ("recorded/t26/gpt_small.pickle.gz", Severity::Low, 580, false),
        // 260 MiB without max_split_size_mb.
        ("findings/g01_max_split_expandable.pickle.gz", Severity::Medium, 8063, true),
        // The allocator had to make room.
        ("recorded/gpt_max_split.pickle.gz", Severity::Medium, 1209, true),
        ("recorded/late_max_split_26.pickle.gz", Severity::Medium, 3137, true),
    ] {
        let found = recorded(path).of_kind(FindingKind::Reserved);
        let [finding] = found.as_slice() else { panic!("{path}: one finding, not {found:?}") };
        assert_eq!((finding.severity, finding.bytes / MIB), (severity, mib), "{path}");
        let Facts::Reserved(peak) = &finding.facts else { panic!("{finding:?}") };
        let is_named = |setting: &CostlySetting| match setting {
            CostlySetting::MaxSplitSize { bytes, .. } => bytes.0 > 0,
            CostlySetting::RoundupPower2Divisions { .. } => false,
        };
        assert_eq!(peak.settings.iter().any(is_named), setting, "{path}");
        let memory = &peak.memory;
        let sum = memory.in_use.0 + memory.rounding.0 + memory.free().0 + memory.graph_pools.0;
        assert_eq!(sum, peak.reserved.0, "{path}: the uses add up");
    }
}

/// `torch.cuda.graph` calls `empty_cache` itself, and graphs use the free memory of their pools.
#[test]
fn graphs_have_no_findings_about_the_allocator() {
    for path in [
        "recorded/t20/pools.pickle",
        "recorded/t26/pools.pickle",
        "recorded/t29/pools.pickle",
        "findings/s10_graph_capture.pickle.gz",
    ] {
        let device = recorded(path);
        for kind in [FindingKind::Churn, FindingKind::Reserved, FindingKind::StrandedPool] {
            assert_eq!(device.of_kind(kind), [], "{path}");
        }
    }
}

#[test]
fn pending_frees_of_recordings() {
    let found = recorded("recorded/t26/streams.pickle.gz").of_kind(FindingKind::PendingFree);
    let [finding] = found.as_slice() else { panic!("one finding, not {found:?}") };
    let Facts::PendingFree(waits) = &finding.facts else { panic!("{finding:?}") };
    assert_eq!(finding.bytes, waits.peak.0 - waits.peak_without.0);
    assert_eq!((waits.frees, finding.parts.len()), (160, 1));
}

/// cuDNN asks for less where a workspace cannot be had. The run ended when 108 MiB were refused.
#[test]
fn the_failure_that_ended_the_run_counts() {
    let device = recorded("findings/real_conv3d_1970.pickle.gz");
    let stories = stories(&device);
    let [(finding, story)] = stories.as_slice() else { panic!("one finding, not {stories:?}") };
    assert_eq!((story.requested, story.failures), (Bytes(108 * MIB), 37));
    assert_eq!((story.aftermath, finding.severity), (Aftermath::Ended, Severity::High));
    assert_eq!(finding.stack(), None, "the request has no frames, whoever holds most memory");
}

/// `X.stats.json` has `memory_stats()` of the recorded process on the GPU, and its message.
#[test]
fn recordings_of_a_gpu_have_the_peaks_of_memory_stats() {
    for name in ["real_unique_growth", "real_oom_gpt_flash"] {
        let stats = crate::bytes_of(format!("findings/{name}.stats.json"));
        let stats: serde_json::Value = serde_json::from_slice(&stats).expect("JSON");
        let stats = &stats["at_dump"]["0"]["memory_stats"];
        let Device { trace, carving, .. } = recorded(&format!("findings/{name}.pickle.gz"));
        for (band, key) in [
            (trace.requested_band, "requested_bytes.all"),
            (carving.active_band, "active_bytes.all"),
            (trace.reserved_band, "reserved_bytes.all"),
        ] {
            let found = [band.peak, band.end].map(Some);
            let expected = ["peak", "current"].map(|what| stats[format!("{key}.{what}")].as_i64());
            assert_eq!(found, expected, "{name}: {key}");
        }
    }
}

/// "Tried to allocate 786.00 MiB": the backward pass of step 1, under a limit of the process.
#[test]
fn a_limit_of_the_process_refused_a_gradient() {
    let device = recorded("findings/real_oom_gpt_flash.pickle.gz");
    let stories = stories(&device);
    let [(finding, story)] = stories.as_slice() else { panic!("one finding, not {stories:?}") };
    assert_eq!((finding.step, finding.phase), (Some(1), Some(Phase::Backward)));
    assert_eq!((story.requested, story.aftermath), (Bytes(786 * MIB), Aftermath::Ended));
}

/// The program catches the error, halves the batch, and ends seven steps with it.
#[test]
fn a_caught_failure_says_that_the_run_went_on() {
    let device = recorded("findings/oom_halved.pickle.gz");
    assert_eq!(stories(&device)[0].1.aftermath, Aftermath::WentOn { steps: 7 });
}

/// Something else takes memory while the program runs: PyTorch had 486 MiB, and can have 206 MiB.
#[test]
fn memory_that_another_process_took_is_the_cause() {
    let device = recorded("findings/oom_other_process.pickle.gz");
    let (_, story) = &stories(&device)[0];
    assert_eq!((story.verdict, story.excess()), (Verdict::OtherMemory, None));
    assert_eq!(story.shrunk, Bytes(280 * MIB));
}

/// Clones of the state dictionary and of the moments, on the device.
#[test]
fn copies_of_the_model_are_no_inputs() {
    let device = recorded("findings/oom_ckpt_save.pickle.gz");
    let (_, story) = &stories(&device)[0];
    let (bytes, blocks) = story.copies.expect("copies");
    assert!(blocks > 80 && bytes > Bytes(100 * MIB), "{blocks} {bytes}");
    assert_eq!(story.larger, None, "a ratio of 172,474 compares unlike things");
}

/// An evaluation concatenates the outputs of each batch to those before.
#[test]
fn results_that_are_concatenated_climb() {
    let device = recorded("findings/g04_eval_concat.pickle.gz");
    let (_, story) = &stories(&device)[0];
    let climb = story.climb.expect("a climb");
    assert_eq!((climb.times, climb.step), (27, Bytes(393 * MIB)));
    assert_eq!(story.larger, None);
}

/// Each graph has a pool of its own. The file does not name the pool of the request.
#[test]
fn a_failure_in_a_capture_is_no_failure_of_the_default_pool() {
    let device = recorded("findings/oom_graph_capture.pickle.gz");
    let (_, story) = &stories(&device)[0];
    assert_eq!((story.context, story.is_pool_assumed), (Context::Capture, false));
    assert_eq!(story.climb, None, "larger batches are no concatenation");
    assert_eq!(story.graph_pools.1, 7);
}

/// `memory_stats()` of this process: `num_alloc_retries` is 0. Steps peak at 8.73 GiB and at 4.14.
#[test]
fn a_search_of_cudnn_is_told_from_a_retry() {
    let device = recorded("findings/real_cudnn_benchmark.pickle.gz");
    let found = device.of_kind(FindingKind::Churn);
    let [Finding { facts: Facts::Churn(churn), common }] = found.as_slice() else {
        panic!("one finding about step 0, not {found:?}")
    };
    assert_eq!(common.step, Some(0));
    let search = churn.search.expect("a search");
    let gib = |bytes: Bytes| (bytes.0 as f64 / f64::from(1 << 30) * 100.0).round() as u64;
    assert_eq!((gib(search.peak), search.later.map(gib)), (873, Some(414)));
    assert!(!churn.by_allocator);
}

/// Six graphs with a pool each hold 678 MiB at the end, of 1,260 that are reserved.
#[test]
fn pools_of_graphs_of_recordings() {
    let found = recorded("findings/graph_pools_stranded.pickle.gz");
    let found = found.of_kind(FindingKind::StrandedPool);
    let [Finding { facts: Facts::GraphPools(pools), .. }] = found.as_slice() else {
        panic!("one finding, not {found:?}")
    };
    assert_eq!((pools.pools, pools.reserved.0 / MIB, pools.peak.0 / MIB), (6, 678, 1260));
    // One pool that twelve captures extend.
    let found = recorded("findings/g15_graph_per_shape.pickle.gz");
    let found = found.of_kind(FindingKind::StrandedPool);
    let [Finding { facts: Facts::GraphPools(pools), .. }] = found.as_slice() else {
        panic!("one finding, not {found:?}")
    };
    assert_eq!(pools.growth.map(|growth| (growth.captures, growth.grew)), Some((12, 12)));
}

/// Six blocks of 800 MiB of a prefetch stream; 272 MiB of a side stream.
#[test]
fn free_memory_of_streams_of_recordings() {
    for (path, free) in [("g14_prefetch_stream", 4800), ("side_stream_strands", 272)] {
        let found = recorded(&format!("findings/{path}.pickle.gz"));
        let found = found.of_kind(FindingKind::Reserved);
        let [Finding { facts: Facts::Reserved(peak), common }] = found.as_slice() else {
            panic!("{path}: one finding, not {found:?}")
        };
        let [side] = peak.out_of_reach.as_slice() else { panic!("{path}: {peak:?}") };
        assert_eq!((side.free.0 / MIB, common.severity), (free, Severity::Medium), "{path}");
    }
    let state = recorded("findings/g32_state_pending.pickle.gz");
    assert_eq!(state.of_kind(FindingKind::PendingFree), []);
}

/// `kept = logits.detach().clone()` after each update: the next step holds the last output.
#[test]
fn a_copy_of_the_output_that_stays_is_held_too_long() {
    let found = recorded("truth/logits_till_next.pickle.gz").of_kind(FindingKind::HeldTooLong);
    assert_eq!(found.iter().map(|finding| finding.bytes).collect::<Vec<_>>(), [49_152_000]);
}
