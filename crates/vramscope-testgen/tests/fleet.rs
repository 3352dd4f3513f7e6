//! What is planted in a fleet is what the reports find.

use vramscope_report::card::Card;
use vramscope_report::matrix::matrices;
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::{FileReader, FindingKind, LoadedFile};
use vramscope_testgen::fleet::{LEAK_BYTES, LEAK_SITE, SKEW_BYTES, SKEW_SITE, STEPS_PER_ITERATION};
use vramscope_testgen::{Fleet, FleetOptions, Generator, Options};
use vramscope_trace::slicing::now;

const OPTIONS: FleetOptions = FleetOptions { ranks: 24, stages: 3, skewed: 1, leaking: 1, seed: 7 };

fn read(fleet: &Fleet, rank: u64, iterations: u64) -> LoadedFile {
    let options = Options { events: 2000, live: 100, frames: 8, ..Options::default() };
    let mut bytes = Vec::new();
    let generator = Generator::new(&options).expect("valid options");
    generator.write_of(fleet, rank, iterations, &mut bytes).expect("a Vec takes all bytes");
    let path = format!("rank{rank}_memory_snapshot.pickle");
    let mut reader = FileReader::new(&path, bytes.len() as u64);
    reader.feed(&bytes).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

#[test]
fn stages_are_clusters_and_the_skewed_rank_is_the_outlier() {
    let fleet = Fleet::new(OPTIONS).expect("a fleet");
    let files: Vec<LoadedFile> = (0..OPTIONS.ranks).map(|rank| read(&fleet, rank, 0)).collect();
    let targets = files.iter().map(|file| file.target(0, 0).expect("a device"));
    let ranks: Vec<Card> =
        targets.map(|target| now(async |budget| Card::new(target, budget).await)).collect();
    let report = matrices(&ranks, usize::MAX);
    let [run] = &report.runs[..] else { panic!("{} runs", report.runs.len()) };
    let clusters: Vec<&[u32]> = run.clusters.iter().map(|cluster| &cluster.ranks[..]).collect();
    let stages: Vec<Vec<u32>> = (0..OPTIONS.stages)
        .map(|stage| (0..24).filter(|&rank| fleet.stage(rank.into()) == stage).collect())
        .collect();
    assert_eq!(clusters, stages);
    let [outlier] = &run.outliers[..] else { panic!("{} outliers", run.outliers.len()) };
    assert_eq!([u64::from(outlier.rank)], fleet.skewed());
    assert_eq!((outlier.bytes, &outlier.sites[..]), (SKEW_BYTES, &[SKEW_SITE.to_owned()][..]));
}

#[test]
fn the_leaking_rank_grows_in_each_step_and_from_iteration_to_iteration() {
    let fleet = Fleet::new(OPTIONS).expect("a fleet");
    let leaks = |&rank: &u64| {
        let file = read(&fleet, rank, 0);
        let target = file.target(0, 0).expect("a device");
        let findings = target.entry.findings(target.index);
        findings.iter().any(|finding| finding.kind() == FindingKind::Growth)
    };
    let leaking: Vec<u64> = (0..OPTIONS.ranks).filter(leaks).collect();
    assert_eq!(leaking, fleet.leaking());
    // What earlier iterations kept is there from the start.
    let kept = |iterations: u64| {
        let file = read(&fleet, leaking[0], iterations);
        let target = file.target(0, 0).expect("a device");
        let blocks = target.trace().blocks.iter();
        blocks.filter(|block| block.bytes.0 == LEAK_BYTES * STEPS_PER_ITERATION).count()
    };
    assert_eq!([kept(0), kept(2)], [0, 2]);
    let file = read(&fleet, leaking[0], 0);
    let report = peak(file.target(0, 0).expect("a device"), BandKind::Requested, None);
    assert!(report.stacks.iter().any(|stack| stack.site == LEAK_SITE));
}

#[test]
fn a_fleet_that_cannot_be_is_refused() {
    for wrong in [
        FleetOptions { stages: 25, ..OPTIONS },
        FleetOptions { stages: 0, ..OPTIONS },
        FleetOptions { skewed: 20, leaking: 5, ..OPTIONS },
    ] {
        let error = Fleet::new(wrong).expect_err("no fleet").to_string();
        assert!(error.contains("24 ranks are too few"), "{error}");
    }
}
