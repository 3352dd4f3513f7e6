//! The overview of a run, against the comparison that the program prints.

use std::path::Path;
use vramscope_protocol::views::{Answer, Overview, Query, RankCard, RankSort, RunQuery};
use vramscope_protocol::{DeviceRef, Quantity, Request, Response, RunRequest, RunResponse};
use vramscope_report::FindingKind;
use vramscope_report::LoadedFile;
use vramscope_report::Target;
use vramscope_report::findings::across;
use vramscope_report::rank::RankSummary;
use vramscope_session::{Coordinator, FileSession, Loader};

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    std::fs::read(path).expect("a file of test_data")
}

fn number(quantity: &Quantity) -> u64 {
    quantity.value.try_into().expect("an integer")
}

/// The eight ranks of the sample run.
fn sample() -> Vec<(String, LoadedFile)> {
    let rank = |rank: u32| {
        let path = format!("rank{rank}_memory_snapshot.pickle");
        let mut loader = Loader::new(&path, 0);
        loader.feed(&bytes(&format!("../web/site/public/sample/{path}.gz"))).expect("a snapshot");
        (path, loader.finish().expect("a snapshot"))
    };
    (0..8).map(rank).collect()
}

fn card_of(path: &str, name: &str) -> Box<RankCard> {
    let mut engine = FileSession::new(path, 0);
    engine.feed(&bytes(name)).expect("a snapshot");
    assert!(matches!(engine.finish(), Response::Loaded(_)));
    let target = DeviceRef { part: 0, device: 0 };
    engine.post(Request::View { id: 1, target, query: Query::Card {} });
    match engine.step().map(|reply| reply.response) {
        Some(Response::View { id: 1, answer: Answer::Card(card) }) => card,
        other => panic!("{other:?}"),
    }
}

fn run(coordinator: &mut Coordinator, query: RunQuery) -> Overview {
    match coordinator.handle(&RunRequest::View { id: 3, query }) {
        RunResponse::Overview { id: 3, overview } => overview,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranks_are_compared_as_by_the_program() {
    let files = sample();
    let summaries: Vec<RankSummary> = files
        .iter()
        .map(|(path, file)| RankSummary::new(Target { path, entry: &file.entries[0], index: 0 }))
        .collect();
    let told: Vec<_> = across(summaries)
        .anomalies
        .into_iter()
        .filter(|a| a.kind == FindingKind::Outlier)
        .collect();
    assert!(!told.is_empty(), "one rank of the sample holds more than the others");

    let mut coordinator = Coordinator::default();
    let mut overview = None;
    // In another order than that of the ranks, and one of them twice.
    for rank in [5, 0, 7, 3, 1, 6, 2, 4, 3] {
        let path = format!("rank{rank}_memory_snapshot.pickle");
        let card = card_of(&path, &format!("../web/site/public/sample/{path}.gz"));
        overview = Some(run(
            &mut coordinator,
            RunQuery::Card { key: 100 + rank, group: "run".into(), card },
        ));
    }
    let overview = overview.expect("nine answers");
    let mut found: Vec<_> =
        overview.outliers.iter().map(|f| (&*f.id, &*f.path, number(&f.bytes), &*f.text)).collect();
    found.sort_unstable();
    let mut expected: Vec<_> = told.iter().map(|a| (&*a.id, &*a.path, a.bytes, &*a.text)).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);

    let keys: Vec<u32> = overview.rows.iter().map(|r| r.key).collect();
    assert_eq!(keys, (100..108).collect::<Vec<_>>());
    assert_eq!(
        overview.rows.iter().map(|r| &*r.group).collect::<Vec<_>>(),
        ["run", "", "", "", "", "", "", ""]
    );
    assert!(
        overview.text.starts_with("peaks from ") && overview.text.contains(" to "),
        "{}",
        overview.text
    );
    let largest = overview.rows.iter().map(|r| r.requested.max(r.reserved)).fold(0.0, f64::max);
    assert_eq!(largest, 1.0);
    for row in &overview.rows {
        let path = format!("rank{}_memory_snapshot.pickle", row.key - 100);
        let named = told.iter().filter(|a| a.path == path).max_by_key(|a| a.bytes);
        assert_eq!(row.outlier.is_empty(), named.is_none(), "{row:?}");
        assert!(named.is_none() || row.outlier.contains(" more "), "{row:?}");
        assert!(
            (row.categories.last().expect("some") - row.requested).abs() < 1e-9
                && row.categories.is_sorted()
        );
    }
}

#[test]
fn rows_are_sorted_and_ranks_decide_among_equals() {
    let mut coordinator = Coordinator::default();
    let a = card_of("b/rank2_x.pickle", "recorded/t26/linear_seed_python.pickle");
    let b = card_of("a/rank3_x.pickle", "recorded/t26/linear_seed_python.pickle");
    let c = card_of("a/rank1_x.pickle", "recorded/t26/oom_observer.pickle.gz");
    run(&mut coordinator, RunQuery::Card { key: 1, group: "b".into(), card: a });
    run(&mut coordinator, RunQuery::Card { key: 2, group: "a".into(), card: b });
    let overview = run(&mut coordinator, RunQuery::Card { key: 3, group: "a".into(), card: c });
    let rows = |overview: &Overview| overview.rows.iter().map(|r| r.key).collect::<Vec<_>>();
    assert_eq!(rows(&overview), [3, 2, 1]);
    assert_eq!(overview.rows.iter().map(|r| &*r.group).collect::<Vec<_>>(), ["a", "", "b"]);
    for (sort, descending, expected) in [
        (RankSort::Rank, true, [1, 2, 3]),
        (RankSort::Peak, true, [3, 2, 1]),
        (RankSort::Peak, false, [2, 1, 3]),
        (RankSort::Reserved, false, [2, 1, 3]),
        (RankSort::Findings, true, [3, 2, 1]),
    ] {
        let overview = run(&mut coordinator, RunQuery::Sort { sort, descending });
        assert_eq!(rows(&overview), expected, "{sort:?} {descending}");
        assert!(overview.rows.iter().all(|r| r.group.is_empty()));
    }
    let empty = run(&mut coordinator, RunQuery::Clear {});
    assert_eq!((empty.rows.len(), &*empty.text, empty.outliers.len()), (0, "", 0));
}
