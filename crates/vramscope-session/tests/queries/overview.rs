//! The overview of a run, compared with the report of the command line.

use super::harness::{TARGET, ask, load_file_as, open_session_as, report_target};
use vramscope_report::card::Card;
use vramscope_report::findings::{FindingRecord, across};
use vramscope_report::{FindingId, FindingKind, LoadedFile};
use vramscope_session::Coordinator;
use vramscope_session::messages::views::{
    Answer, ListQuery, Overview, Query, RankList, RankSort, RunCard, RunQuery,
};
use vramscope_session::messages::{RunRequest, RunResponse};
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

/// The file of a rank of a run in which rank 2 holds more.
fn file_name(rank: u32) -> String {
    format!("findings/ranks_fsdp2_skew/{}.gz", path(rank))
}

fn path(rank: u32) -> String {
    format!("rank{rank}_memory_snapshot.pickle")
}

/// The four ranks of the run.
fn ranks() -> Vec<LoadedFile> {
    (0..4).map(|rank| load_file_as(&path(rank), &file_name(rank))).collect()
}

fn card_of(path: &str, name: &str) -> Box<Card> {
    let (mut session, _) = open_session_as(path, name);
    let sent = answer!(session, Query::Card {}, Card);
    Box::new(Card::parse(sent.card.as_bytes()).expect("a card"))
}

fn in_run(key: u32, group: &str, card: Box<Card>) -> RunCard {
    RunCard { key, group: group.to_owned(), card }
}

fn run(coordinator: &mut Coordinator, query: RunQuery) -> Overview {
    match coordinator.handle(&RunRequest::View { id: 3, query }) {
        RunResponse::Overview { id: 3, overview } => overview,
        other => panic!("{other:?}"),
    }
}

fn list(coordinator: &mut Coordinator, query: ListQuery) -> RankList {
    match coordinator.handle(&RunRequest::List { id: 4, query }) {
        RunResponse::List { id: 4, list } => list,
        other => panic!("{other:?}"),
    }
}

/// The parts of a finding that page and report state alike.
fn compared(record: &FindingRecord) -> (&FindingId, &str, Bytes, &str) {
    (&record.id, &record.path, record.bytes, &record.text)
}

#[test]
fn files_without_ranks_are_called_files() {
    let mut coordinator = Coordinator::default();
    let cards = [("a.pickle", 0), ("b.pickle", 2)]
        .map(|(path, rank)| in_run(rank, "", card_of(path, &file_name(rank))));
    let overview = run(&mut coordinator, RunQuery::Cards { cards: cards.into() });
    let peaks = &overview.list.peaks;
    assert!(peaks.starts_with("Peak per file: ") && peaks.contains(" to "), "{peaks}");
}

#[test]
fn rank_skew_equals_the_report() {
    let files = ranks();
    let cards = files
        .iter()
        .map(|file| now(async |budget| Card::new(report_target(file), budget).await))
        .collect();
    let reported: Vec<_> = across(cards)
        .into_iter()
        .map(|entry| entry.record)
        .filter(|a| a.kind == FindingKind::RankSkew)
        .collect();
    assert!(!reported.is_empty(), "rank 2 holds more than the others");

    let mut coordinator = Coordinator::default();
    let mut overview = None;
    // Not in the order of ranks, and one rank twice.
    for rank in [2, 0, 3, 1, 3] {
        let card = card_of(&path(rank), &file_name(rank));
        overview = Some(run(
            &mut coordinator,
            RunQuery::Cards { cards: vec![in_run(100 + rank, "run", card)] },
        ));
    }
    let overview = overview.expect("five answers");
    let mut found: Vec<_> = overview.outliers.iter().map(|f| &f.record).map(compared).collect();
    found.sort_unstable();
    let mut expected: Vec<_> = reported.iter().map(compared).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);

    let keys: Vec<u32> = overview.rows.iter().map(|shown| shown.row.key).collect();
    assert_eq!(keys, (100..104).collect::<Vec<_>>());
    assert_eq!(overview.list.order, keys);
    assert!(overview.list.is_whole && overview.list.text.is_empty());
    assert!(
        overview.list.peaks.starts_with("Peak per rank: ") && overview.list.peaks.contains(" to "),
        "{}",
        overview.list.peaks
    );
    // Rank 2 is the story of the run: no finding of its own is worse than the comparison's.
    assert_eq!(overview.worst, Some(102));
    let rows = || overview.rows.iter().map(|shown| &shown.row);
    for row in rows() {
        let story = row.story.map(|at| &*overview.outliers[at as usize].record.path);
        let is_worst = row.key == 102;
        assert_eq!(story, is_worst.then_some(&*path(2)), "{row:?}");
    }
    let largest = rows().map(|r| r.requested.max(r.reserved)).fold(0.0, f64::max);
    assert_eq!(largest, 1.0);
    for row in rows() {
        let path = path(row.key - 100);
        let largest = reported.iter().filter(|a| a.path == path).max_by_key(|a| a.bytes);
        assert_eq!(row.outlier.is_empty(), largest.is_none(), "{row:?}");
        assert!(largest.is_none() || row.outlier.contains(" more "), "{row:?}");
        assert!(
            (row.categories.last().expect("some").end - row.requested).abs() < 1e-9
                && row.categories.is_sorted_by_key(|bar| bar.end)
        );
    }
}

#[test]
fn rows_are_sorted_and_equals_stay_in_rank_order() {
    let mut coordinator = Coordinator::default();
    let a = card_of("b/rank2_x.pickle", "recorded/t26/linear_seed_python.pickle");
    let b = card_of("a/rank3_x.pickle", "recorded/t26/linear_seed_python.pickle");
    let c = card_of("a/rank1_x.pickle", "recorded/t26/oom_observer.pickle.gz");
    run(&mut coordinator, RunQuery::Cards { cards: vec![in_run(1, "b", a)] });
    let cards = vec![in_run(2, "a", b), in_run(3, "a", c)];
    let overview = run(&mut coordinator, RunQuery::Cards { cards });
    assert_eq!(overview.list.order, [3, 2, 1]);
    // The rank that ran out of memory.
    assert_eq!(overview.worst, Some(3));
    assert!(overview.rows.iter().all(|shown| shown.row.story.is_none()));
    for (sort, descending, expected) in [
        (RankSort::Rank, true, [1, 2, 3]),
        (RankSort::Peak, true, [3, 2, 1]),
        (RankSort::Peak, false, [2, 1, 3]),
        (RankSort::Reserved, false, [2, 1, 3]),
        (RankSort::Findings, true, [3, 2, 1]),
    ] {
        let query = ListQuery { sort, descending, ..ListQuery::default() };
        let found = list(&mut coordinator, query);
        assert_eq!(found.order, expected, "{sort:?} {descending}");
    }
    for (filter, expected, text) in [
        ("1", &[3][..], "1 of 3 ranks"),
        ("2-3", &[2, 1], "2 of 3 ranks"),
        ("oom", &[3], "1 of 3 ranks"),
        ("A/", &[3, 2], "2 of 3 ranks"),
        (">=100GiB", &[], "0 of 3 ranks"),
        ("<1000GiB >0", &[3, 2, 1], ""),
        ("1,3 a/rank3", &[2], "1 of 3 ranks"),
    ] {
        let query = ListQuery { filter: filter.to_owned(), ..ListQuery::default() };
        let found = list(&mut coordinator, query);
        assert_eq!((&*found.order, &*found.text), (expected, text), "{filter}");
    }
    list(&mut coordinator, ListQuery::default());
    let empty = run(&mut coordinator, RunQuery::Clear {});
    assert_eq!((empty.rows.len(), &*empty.list.peaks, empty.outliers.len()), (0, "", 0));
}

#[test]
fn a_row_has_the_figures_of_the_card() {
    let name = "recorded/t26/oom_observer.pickle.gz";
    let mut coordinator = Coordinator::default();
    let cards = vec![in_run(7, "", card_of("rank1_x.pickle", name))];
    let overview = run(&mut coordinator, RunQuery::Cards { cards });
    let [shown] = &overview.rows[..] else { panic!("{} rows", overview.rows.len()) };
    let made = now(async |budget| {
        Card::new(report_target(&load_file_as("rank1_x.pickle", name)), budget).await
    });
    let (row, card) = (&shown.row, &shown.card);
    assert!(!shown.indexed);
    assert_eq!(card.bands, made.bands);
    assert_eq!((&card.findings, &card.ooms), (&made.findings, &made.ooms));
    assert_eq!(row.ooms, "1 out-of-memory event");
    assert!(row.spark.starts_with("M0 32") && row.spark.ends_with("H200V32Z"), "{}", row.spark);
    // Categories have their fixed order, and bars as wide as their bytes.
    assert!(card.categories.is_sorted_by_key(|of| of.category));
    assert_eq!(card.categories.len(), row.categories.len());
    let labels: Vec<&str> = row.categories.iter().map(|bar| &*bar.label).collect();
    assert!(labels.contains(&"parameters"), "{labels:?}");
    let (mut end, mut sum) = (0.0, 0);
    for (of, bar) in card.categories.iter().zip(&row.categories) {
        sum += of.bytes.0;
        let share = (bar.end - end) / row.requested;
        let expected = of.bytes.0 as f64 / made.bands[0].peak.0 as f64;
        assert!((share - expected).abs() < 1e-9, "{of:?} {bar:?}");
        end = bar.end;
    }
    assert_eq!(sum as i64, made.bands[0].peak.0);
    // Lists that no row shows stay with the coordinator.
    let hidden = [card.sites.len(), card.stacks.len(), card.steps.len(), card.curve.len()];
    assert_eq!((hidden, card.names.sites.len()), ([0; 4], 0));
}

#[test]
fn a_card_that_is_none_is_refused_with_the_reason() {
    let file = load_file_as(&path(0), &file_name(0));
    let json = now(async |budget| Card::new(report_target(&file), budget).await).to_json();
    let message = |card: &str| serde_json::json!({"key": 1, "group": "", "card": card}).to_string();
    let read = |card: &str| serde_json::from_str::<RunCard>(&message(card));
    assert!(read(&json).is_ok());
    let error = read(&json.replace("\"device\":", "\"gpu\":")).expect_err("no device");
    assert!(error.to_string().contains("missing field `device`"), "{error}");
}
