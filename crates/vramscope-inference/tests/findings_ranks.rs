//! Rank skew on hand-made figures, one cause at a time.

use vramscope_inference::{
    Basis, CallSite, Category, FindingKind, RankFacts, RankSkew, RankStack, Severity, SkewCause,
    rank_matrix, rank_skew,
};
use vramscope_units::Bytes;

const MIB: u64 = 1 << 20;

/// Rank `rank` of a run: 30 call sites of activations of `batch` MiB each, inputs of a tenth of
/// that, parameters of 200 MiB and optimizer state of 400 MiB. The allocator reserves a fifth more.
fn rank(rank: u32, batch: u64) -> RankFacts {
    let mut facts = RankFacts {
        folder: "run/".to_owned(),
        file: "rank.pickle".to_owned(),
        rank: Some(rank),
        ..RankFacts::default()
    };
    for line in 0..30 {
        hold(&mut facts, line, batch * MIB, Category::Activation);
    }
    hold(&mut facts, 30, batch * MIB / 10, Category::Input);
    hold(&mut facts, 31, 200 * MIB, Category::Parameter);
    hold(&mut facts, 32, 400 * MIB, Category::OptimizerState);
    facts
}

/// Eight ranks with batches that differ a little.
fn run() -> Vec<RankFacts> {
    (0..8).map(|index| rank(index, 20 + u64::from(index % 3))).collect()
}

/// Adds live memory at the peak.
fn hold(rank: &mut RankFacts, line: u64, bytes: u64, category: Category) {
    let site = CallSite { name: format!("train.py:{line} step"), has_frame: true };
    match rank.by_stack.iter_mut().find(|stack| stack.hash == line) {
        Some(stack) => stack.bytes += bytes,
        None => {
            rank.by_stack.push(RankStack { hash: line, site, bytes, category, is_named: false });
        }
    }
    match rank.by_category.iter_mut().find(|share| share.0 == category) {
        Some(share) => share.1 += bytes,
        None => rank.by_category.push((category, bytes)),
    }
    rank.requested_peak += bytes;
    rank.reserved_peak += bytes * 6 / 5;
}

/// The only finding of a run, with its rank.
fn only(ranks: &[RankFacts]) -> (usize, RankSkew) {
    let mut found = rank_skew(ranks);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn small_differences_between_batches_are_no_skew() {
    assert_eq!(rank_skew(&run()), []);
}

#[test]
fn memory_that_one_rank_holds_is_one_finding_with_all_its_sites() {
    let mut ranks = run();
    hold(&mut ranks[5], 99, 500 * MIB, Category::Unknown);
    hold(&mut ranks[5], 98, 100 * MIB, Category::Input);
    let (index, finding) = only(&ranks);
    let held = &finding;
    assert_eq!((index, held.rank, &held.cause), (5, 5, &SkewCause::Held));
    assert_eq!((finding.excess(), held.usual, held.ranks), (Bytes(600 * MIB), Bytes(0), 8));
    let sites: Vec<_> = held.sites.iter().map(|site| (site.hash, site.excess.0 / MIB)).collect();
    assert_eq!(sites, [(99, 500), (98, 100)]);
    assert_eq!((finding.severity, finding.basis), (Severity::Medium, Basis::Recorded));
    assert_eq!(finding.id.to_string(), "rank_skew-0-0000000000000063");
}

#[test]
fn a_finding_of_the_rank_that_names_the_site_replaces_the_skew() {
    let mut ranks = run();
    hold(&mut ranks[5], 99, 500 * MIB, Category::Activation);
    ranks[5].findings.push((FindingKind::Growth, 500 * MIB));
    let stack = ranks[5].by_stack.iter_mut().find(|stack| stack.hash == 99);
    stack.expect("the leak").is_named = true;
    assert_eq!(rank_skew(&ranks), []);
}

#[test]
fn one_ratio_at_all_sites_is_a_larger_batch() {
    let mut ranks = run();
    ranks[2] = rank(2, 66);
    let (index, finding) = only(&ranks);
    let batch = &finding;
    let SkewCause::Batch { percent, inputs: Some((own, usual)) } = batch.cause else {
        panic!("{batch:?}")
    };
    assert_eq!((index, percent, batch.sites.len()), (2, 314, 31));
    assert_eq!((own.0, usual.0), (66 * MIB / 10, 21 * MIB / 10));
    assert_eq!((finding.severity, finding.basis), (Severity::Medium, Basis::Estimate));

    // Batches of samples of different lengths differ by so much.
    ranks[2] = rank(2, 34);
    let (_, finding) = only(&ranks);
    let SkewCause::Batch { percent, .. } = finding.cause else { panic!("{finding:?}") };
    assert_eq!((percent, finding.severity), (161, Severity::Low));
}

/// With Python frames alone, all of backward is one row. Gradients and workspaces in it do not grow
/// with the sequences.
#[test]
fn what_has_no_frames_does_not_hide_longer_sequences() {
    let mut ranks = run();
    ranks[2] = rank(2, 42);
    for (index, facts) in ranks.iter_mut().enumerate() {
        // As much as all call sites with frames, of which half grows.
        let bytes = if index == 2 { 930 } else { 630 };
        hold(facts, 77, bytes * MIB, Category::Activation);
        let stack = facts.by_stack.iter_mut().find(|stack| stack.hash == 77);
        stack.expect("it was added").site.has_frame = false;
    }
    let (index, finding) = only(&ranks);
    let SkewCause::Batch { percent, .. } = finding.cause else { panic!("{finding:?}") };
    assert_eq!((index, percent, finding.sites.len()), (2, 200, 31));
}

/// A rank without activation checkpointing has other call stacks, but the same call sites.
#[test]
fn a_rank_with_other_stacks_at_the_same_sites_is_found_by_the_matrix() {
    let mut ranks = run();
    for (index, facts) in ranks.iter_mut().enumerate() {
        let is_odd = index == 1;
        hold(facts, 50, if is_odd { 500 * MIB } else { 20 * MIB }, Category::Activation);
        facts.by_site = (facts.by_stack.iter()).map(|s| (s.site.clone(), s.bytes)).collect();
        if is_odd {
            facts.by_stack.iter_mut().for_each(|stack| stack.hash += 1000);
        }
    }
    let (index, finding) = only(&ranks);
    assert_eq!((index, &finding.cause), (1, &SkewCause::Held));
    assert_eq!((finding.bytes, finding.usual), (Bytes(500 * MIB), Bytes(20 * MIB)));
    assert_eq!(finding.category, Some(Category::Activation));
    let sites: Vec<_> = finding.sites.iter().map(|site| (site.hash, &*site.site.name)).collect();
    assert_eq!(sites, [(1050, "train.py:50 step")]);
    // At another moment the rank would peak as the others do.
    ranks[1].requested_peak -= 400 * MIB;
    assert_eq!(rank_skew(&ranks), []);
}

/// The finding and the matrix had rules of their own: the median had to be exceeded by half of it.
#[test]
fn a_third_more_at_one_call_site_is_found_by_one_rule() {
    let mut ranks = run();
    for (index, facts) in ranks.iter_mut().enumerate() {
        hold(facts, 99, if index == 5 { 160 } else { 120 } * MIB, Category::Unknown);
        facts.by_site = (facts.by_stack.iter()).map(|s| (s.site.clone(), s.bytes)).collect();
    }
    let (index, finding) = only(&ranks);
    assert_eq!((index, &finding.cause), (5, &SkewCause::Held));
    assert_eq!((finding.excess(), finding.usual), (Bytes(40 * MIB), Bytes(120 * MIB)));
    let matrix = rank_matrix(&ranks.iter().collect::<Vec<_>>());
    let [outlier] = &matrix.outliers[..] else { panic!("{:?}", matrix.outliers) };
    assert_eq!(matrix.columns[outlier.column].rank, 5);
    assert_eq!((outlier.bytes, outlier.usual), (160 * MIB, 120 * MIB));
}

#[test]
fn a_larger_batch_and_a_leak_on_one_rank_are_two_findings() {
    let mut ranks = run();
    ranks[2] = rank(2, 63);
    hold(&mut ranks[2], 99, 500 * MIB, Category::Activation);
    let found = rank_skew(&ranks);
    let causes: Vec<_> = found.iter().map(|found| &found.1.cause).collect();
    assert!(matches!(causes[..], [SkewCause::Batch { .. }, SkewCause::Held]), "{causes:?}");
    assert_eq!(found[1].1.excess(), Bytes(500 * MIB));
}

#[test]
fn more_parameters_and_optimizer_state_are_sharding() {
    let mut ranks = run();
    hold(&mut ranks[7], 31, 150 * MIB, Category::Parameter);
    hold(&mut ranks[7], 32, 300 * MIB, Category::OptimizerState);
    let (index, finding) = only(&ranks);
    assert_eq!((index, &finding.cause), (7, &SkewCause::Sharding));
    assert_eq!(finding.excess(), Bytes(450 * MIB));
}

#[test]
fn more_reserved_memory_alone_is_the_allocator() {
    let mut ranks = run();
    ranks[1].reserved_peak += 2048 * MIB;
    let (index, finding) = only(&ranks);
    assert_eq!((index, &finding.cause), (1, &SkewCause::Reserved));
    // A finding of the rank about that memory tells it already.
    ranks[1].findings.push((FindingKind::Reserved, 2048 * MIB));
    assert_eq!(rank_skew(&ranks), []);
}

#[test]
fn only_ranks_of_one_run_with_similar_stacks_are_compared() {
    let with_leak = || {
        let mut ranks = run();
        hold(&mut ranks[5], 99, 500 * MIB, Category::Unknown);
        ranks
    };
    // Files without a rank.
    let mut files = with_leak();
    for facts in &mut files {
        facts.rank = None;
    }
    assert_eq!(rank_skew(&files), []);
    // Files of different folders.
    let mut folders = with_leak();
    for (index, facts) in folders.iter_mut().enumerate() {
        facts.folder = format!("run{index}/");
    }
    assert_eq!(rank_skew(&folders), []);
    // The last stage of a pipeline runs other code.
    let mut stages = run();
    stages[7].by_stack.iter_mut().for_each(|stack| stack.hash += 1000);
    stages[7].requested_peak += 4096 * MIB;
    assert_eq!(rank_skew(&stages), []);
    // Several ranks that hold more are another kind of rank.
    let mut kinds = with_leak();
    hold(&mut kinds[6], 99, 500 * MIB, Category::Unknown);
    assert_eq!(rank_skew(&kinds), []);
}

#[test]
fn files_of_one_rank_are_compared_by_their_names() {
    let mut ranks = run();
    let mut later = run();
    hold(&mut later[5], 99, 500 * MIB, Category::Unknown);
    for facts in &mut later {
        "rank_later.pickle".clone_into(&mut facts.file);
    }
    ranks.extend(later);
    assert_eq!(only(&ranks).0, 13);
    // Devices of one file are no ranks: the one with the highest peak takes part.
    let mut second = ranks[13].clone();
    (second.device, second.requested_peak) = (1, MIB);
    ranks.push(second);
    assert_eq!(only(&ranks).0, 13);
}

#[test]
fn another_moment_of_the_peak_is_no_skew() {
    let mut ranks = run();
    let facts = &mut ranks[4];
    hold(facts, 99, 300 * MIB, Category::Temporary);
    // The peak is equal: the rank holds less elsewhere.
    facts.requested_peak -= 300 * MIB;
    assert_eq!(rank_skew(&ranks), []);
}
