//! The matrix of call sites and ranks on hand-made runs with known stages and outliers.

use vramscope_inference::{CallSite, RankFacts, RankMatrix, rank_matrix};

const MIB: u64 = 1 << 20;

fn site(name: &str) -> CallSite {
    CallSite { name: name.to_owned(), has_frame: true }
}

/// A rank that holds `sites`: line and MiB.
fn rank(rank: u32, sites: &[(u32, u64)]) -> RankFacts {
    let by_site: Vec<(CallSite, u64)> = (sites.iter())
        .map(|&(line, mib)| (site(&format!("train.py:{line} step")), mib * MIB))
        .collect();
    RankFacts {
        rank: Some(rank),
        requested_peak: by_site.iter().map(|site| site.1).sum(),
        by_site,
        ..RankFacts::default()
    }
}

/// Small differences between ranks: 0, 1 or 2.
fn jitter(rank: u32) -> u64 {
    u64::from(rank % 3)
}

/// A stage of a pipeline: layers of 400 MiB, activations of more micro-batches in the first stages,
/// the embedding in the first one and the head in the last one.
fn staged(index: u32, stage: u32, stages: u32) -> RankFacts {
    let held = u64::from(stages - stage);
    let mut sites = vec![(10, 400), (20, 120 * held + jitter(index)), (21, 60 * held)];
    if stage == 0 {
        sites.push((1, 500));
    }
    if stage == stages - 1 {
        sites.push((90, 700));
    }
    rank(index, &sites)
}

fn matrix(ranks: &[RankFacts]) -> RankMatrix {
    rank_matrix(&ranks.iter().collect::<Vec<_>>())
}

fn clusters(matrix: &RankMatrix) -> Vec<Vec<u32>> {
    matrix.clusters.iter().map(|cluster| cluster.ranks.clone()).collect()
}

/// Bytes at a call site by rank, in MiB.
fn cells(matrix: &RankMatrix, line: u32) -> Vec<(u32, u64)> {
    let site = site(&format!("train.py:{line} step"));
    let row = matrix.rows.iter().find(|row| row.site == site).expect("a row");
    let mut cells: Vec<(u32, u64)> =
        matrix.columns.iter().zip(&row.bytes).map(|(c, &bytes)| (c.rank, bytes / MIB)).collect();
    cells.sort_unstable();
    cells
}

#[test]
fn like_ranks_are_one_cluster_without_outliers() {
    let ranks: Vec<RankFacts> =
        (0..8).map(|i| rank(i, &[(1, 300), (2, 100 + jitter(i)), (3, 10)])).collect();
    let found = matrix(&ranks);
    assert_eq!(clusters(&found), [(0..8).collect::<Vec<u32>>()]);
    assert_eq!(found.outliers, []);
    let rows: Vec<(&str, u64, u64, u64)> = found
        .rows
        .iter()
        .map(|row| (row.site.name.as_str(), row.median / MIB, row.max / MIB, row.deviation / MIB))
        .collect();
    assert_eq!(
        rows,
        [
            ("train.py:1 step", 300, 300, 0),
            ("train.py:2 step", 101, 102, 1),
            ("train.py:3 step", 10, 10, 0)
        ]
    );
    // Rank 1 has exactly the medians. It is compared with the next one of these.
    let usual = |column: usize| found.columns[found.columns[column].usual].rank;
    assert_eq!((usual(0), usual(1), usual(7)), (1, 4, 1));
}

#[test]
fn stages_of_a_pipeline_are_clusters_wherever_their_ranks_are() {
    // Ranks of a stage are neighbors, or a stage has every fourth rank.
    for (of, first) in [(|i: u32| i / 4, vec![0, 1, 2, 3]), (|i: u32| i % 4, vec![0, 4, 8, 12])]
        as [(fn(u32) -> u32, Vec<u32>); 2]
    {
        let ranks: Vec<RankFacts> = (0..16).map(|i| staged(i, of(i), 4)).collect();
        let found = matrix(&ranks);
        assert_eq!(clusters(&found).len(), 4);
        assert_eq!(clusters(&found)[0], first);
        assert_eq!(found.outliers, []);
        for column in &found.columns {
            assert_eq!(of(column.rank) as usize, column.cluster);
            assert_eq!(found.columns[column.usual].cluster, column.cluster, "{column:?}");
        }
        // What only the last stage has is nothing elsewhere.
        let head: Vec<(u32, u64)> =
            (0..16).map(|i| (i, if of(i) == 3 { 700 } else { 0 })).collect();
        assert_eq!(cells(&found, 90), head);
    }
}

#[test]
fn a_rank_that_holds_more_is_an_outlier_of_its_cluster() {
    // Rank 0 is the one that groups begin with.
    for odd in [0, 5] {
        let mut ranks: Vec<RankFacts> = (0..16).map(|i| staged(i, i / 8, 2)).collect();
        ranks[odd].by_site.push((site("eval.py:7 keep"), 480 * MIB));
        ranks[odd].requested_peak += 480 * MIB;
        let found = matrix(&ranks);
        assert_eq!(clusters(&found), [(0..8).collect::<Vec<u32>>(), (8..16).collect()]);
        let [outlier] = &found.outliers[..] else { panic!("{:?}", found.outliers) };
        assert_eq!(found.columns[outlier.column].rank, odd as u32);
        let sites: Vec<&str> =
            outlier.rows.iter().map(|&row| &*found.rows[row].site.name).collect();
        assert_eq!(sites, ["eval.py:7 keep"]);
        assert_eq!((outlier.bytes, outlier.usual, outlier.others), (480 * MIB, 0, 7));
        // It is compared with a usual rank, and no rank is compared with it.
        assert!(found.columns.iter().all(|c| found.columns[c.usual].rank != odd as u32));
    }
}

#[test]
fn a_rank_that_lacks_a_call_site_holds_less() {
    let of = |index: u32| match index {
        3 => rank(index, &[(1, 900), (3, 50)]),
        _ => rank(index, &[(1, 900), (2, 60), (3, 50), (4, jitter(index))]),
    };
    let found = matrix(&(0..6).map(of).collect::<Vec<_>>());
    assert_eq!(clusters(&found).len(), 1);
    assert_eq!(cells(&found, 2)[3], (3, 0));
    let [outlier] = &found.outliers[..] else { panic!("{:?}", found.outliers) };
    assert_eq!((outlier.bytes, outlier.usual), (0, 60 * MIB));
    assert_eq!(found.columns[outlier.column].rank, 3);
}

#[test]
fn small_and_common_differences_are_no_outliers() {
    // 15 MiB at one site; half of the ranks hold 40 MiB more.
    let small = |i: u32| rank(i, &[(1, 1000), (2, if i == 3 { 15 } else { 0 })]);
    assert_eq!(matrix(&(0..8).map(small).collect::<Vec<_>>()).outliers, []);
    let half = |i: u32| rank(i, &[(1, 1000), (2, if i.is_multiple_of(2) { 40 } else { 0 })]);
    assert_eq!(matrix(&(0..8).map(half).collect::<Vec<_>>()).outliers, []);
    let two = |i: u32| rank(i, &[(1, 1000), (2, if i == 1 { 400 } else { 0 })]);
    // Of two ranks, none is usual.
    let found = matrix(&(0..2).map(two).collect::<Vec<_>>());
    assert_eq!((clusters(&found).len(), found.outliers.len()), (2, 0));
    assert_eq!(found.columns.iter().map(|c| c.usual).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn ranks_that_differ_everywhere_are_clusters_of_their_own() {
    let ranks: Vec<RankFacts> = (0..8)
        .map(|i| {
            rank(
                i,
                &[
                    (1, 200),
                    (2, 100 * u64::from(i)),
                    (3, 90 * u64::from(i)),
                    (4, 80 * u64::from(i)),
                    (5, 70 * u64::from(i)),
                ],
            )
        })
        .collect();
    let found = matrix(&ranks);
    assert_eq!(clusters(&found).len(), 8);
    assert_eq!(found.outliers, []);
    // Each is compared with the one that is most like it.
    let usual: Vec<u32> = found.columns.iter().map(|c| found.columns[c.usual].rank).collect();
    assert_eq!(usual, [1, 0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn nothing_and_hostile_numbers() {
    assert_eq!(matrix(&[]), RankMatrix::default());
    let none = matrix(&[rank(0, &[]), rank(1, &[])]);
    assert_eq!((none.rows.len(), clusters(&none)), (0, vec![vec![0, 1]]));
    let mut ranks: Vec<RankFacts> = (0..4).map(|i| rank(i, &[(1, 1), (2, 2)])).collect();
    for site in &mut ranks[2].by_site {
        site.1 = u64::MAX;
    }
    ranks[2].requested_peak = u64::MAX;
    assert_eq!(matrix(&ranks).columns.len(), 4);
}

#[test]
fn a_thousand_ranks_with_many_call_sites_each_are_compared() {
    // Four stages of 256 ranks, 200 call sites of which half are the stage's own, and one odd rank.
    let of = |index: u32| {
        let stage = index / 256;
        let mut sites: Vec<(u32, u64)> = (0..100).map(|line| (line, 20)).collect();
        sites.extend((0..100).map(|line| (1000 * (stage + 1) + line, 30 + u64::from(line))));
        if index == 700 {
            sites.push((7777, 900));
        }
        rank(index, &sites)
    };
    let found = matrix(&(0..1024).map(of).collect::<Vec<_>>());
    let sizes: Vec<usize> = found.clusters.iter().map(|cluster| cluster.ranks.len()).collect();
    assert_eq!(sizes, [256; 4]);
    assert_eq!((found.rows.len(), found.omitted), (128, 501 - 128));
    assert_eq!(found.rows[0].site.name, "train.py:7777 step");
    let [outlier] = &found.outliers[..] else { panic!("{:?}", found.outliers) };
    assert_eq!(found.columns[outlier.column].rank, 700);
    assert_eq!((outlier.usual, outlier.others), (0, 255));
}

#[test]
fn batches_that_differ_a_little_are_one_cluster() {
    // Seven ranks with batches of 92 to 108 of a hundred samples, and one with 70.
    let batches = [70, 108, 106, 100, 104, 96, 92, 94];
    let of = |index: u32| {
        let batch = batches[index as usize];
        let mut sites: Vec<(u32, u64)> =
            (0..6).map(|line| (line, (6 - u64::from(line)) * batch)).collect();
        sites.push((50, 300));
        rank(index, &sites)
    };
    let found = matrix(&(0..8).map(of).collect::<Vec<_>>());
    // It differs everywhere, so it is no exception.
    assert_eq!(clusters(&found), [vec![0], (1..8).collect()]);
    assert_eq!(found.outliers, []);
}

#[test]
fn more_different_ranks_than_pairs_can_be_compared() {
    // Each of 3,000 ranks differs from all others, in two stages.
    let of = |index: u32| {
        let (own, stage) = (u64::from(index % 1500), index / 1500);
        rank(index, &[(stage, 5000), (2, 8000 + own), (3, own), (4, 1500 - own)])
    };
    let found = matrix(&(0..3000).map(of).collect::<Vec<_>>());
    let stages: Vec<u32> = found.clusters.iter().map(|cluster| cluster.ranks[0] / 1500).collect();
    for cluster in &found.clusters {
        let stage = cluster.ranks[0] / 1500;
        assert!(cluster.ranks.iter().all(|rank| rank / 1500 == stage), "{:?}", cluster.ranks);
    }
    assert!(stages.contains(&0) && stages.contains(&1) && stages.len() < 20, "{stages:?}");
}
