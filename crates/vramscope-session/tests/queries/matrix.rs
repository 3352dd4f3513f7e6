//! The matrix of ranks, compared with the report of the command line.

use super::harness::{TARGET, ask, load_file_as, open_session_as, report_target};
use super::number;
use allocation_counter::measure;
use vramscope_inference::CallSite;
use vramscope_report::card::{Card, SiteBytes};
use vramscope_report::matrix::matrices;
use vramscope_session::Coordinator;
use vramscope_session::messages::views::{
    Answer, Matrix, MatrixAnswer, MatrixCell, MatrixQuery, Query, RunCard, RunQuery,
};
use vramscope_session::messages::{RunRequest, RunResponse};
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

fn path(rank: u32) -> String {
    format!("rank{rank}_memory_snapshot.pickle")
}

fn file_name(rank: u32) -> String {
    format!("findings/ranks_fsdp2_skew/{}.gz", path(rank))
}

fn card(rank: u32) -> Box<Card> {
    let (mut session, _) = open_session_as(&path(rank), &file_name(rank));
    let sent = answer!(session, Query::Card {}, Card);
    Box::new(Card::parse(sent.card.as_bytes()).expect("a card"))
}

fn add(coordinator: &mut Coordinator, cards: Vec<(u32, Box<Card>)>) {
    let cards = cards.into_iter().map(|(key, card)| RunCard { key, group: String::new(), card });
    let query = RunQuery::Cards { cards: cards.collect() };
    coordinator.handle(&RunRequest::View { id: 1, query });
}

fn query(coordinator: &mut Coordinator, query: MatrixQuery) -> MatrixAnswer {
    match coordinator.handle(&RunRequest::Matrix { id: 3, query }) {
        RunResponse::Matrix { id: 3, answer } => answer,
        other => panic!("{other:?}"),
    }
}

fn matrix(coordinator: &mut Coordinator, key: Option<u32>) -> Option<Box<Matrix>> {
    match query(coordinator, MatrixQuery::Show { key, by_step: false }) {
        MatrixAnswer::Matrix(matrix) => matrix,
        MatrixAnswer::Cell(cell) => panic!("{cell:?}"),
    }
}

fn cell(coordinator: &mut Coordinator, row: u32, column: u32) -> Option<MatrixCell> {
    match query(coordinator, MatrixQuery::Cell { row, column }) {
        MatrixAnswer::Cell(cell) => cell,
        MatrixAnswer::Matrix(matrix) => panic!("{matrix:?}"),
    }
}

#[test]
fn the_matrix_equals_the_report() {
    let files: Vec<_> = (0..4).map(|rank| load_file_as(&path(rank), &file_name(rank))).collect();
    let summaries: Vec<_> = files
        .iter()
        .map(|f| now(async |budget| Card::new(report_target(f), budget).await))
        .collect();
    let report = matrices(&summaries, usize::MAX);
    let [run] = &report.runs[..] else { panic!("{report:?}") };

    let mut coordinator = Coordinator::default();
    assert_eq!(matrix(&mut coordinator, None), None);
    add(&mut coordinator, [2, 0, 3, 1].map(|rank| (100 + rank, card(rank))).into());
    let found = matrix(&mut coordinator, Some(102)).expect("a matrix");
    assert_eq!(found.text, run.text);
    let keys: Vec<u32> = found.columns.iter().map(|column| column.key).collect();
    assert_eq!(keys, run.columns.iter().map(|column| 100 + column.rank).collect::<Vec<_>>());
    let usual: Vec<u32> = found.columns.iter().map(|column| column.usual).collect();
    assert_eq!(usual, run.columns.iter().map(|c| 100 + c.usual_rank).collect::<Vec<_>>());
    let clusters: Vec<&str> = found.clusters.iter().map(|cluster| &*cluster.text).collect();
    assert_eq!(clusters, run.clusters.iter().map(|cluster| &*cluster.text).collect::<Vec<_>>());
    assert_eq!(found.rows.len(), run.rows.len());
    assert_eq!(found.levels.len(), run.rows.len() * 4);
    for (at, (row, record)) in (0..).zip(found.rows.iter().zip(&run.rows)) {
        assert_eq!(row.site, record.site);
        assert_eq!((number(&row.median), number(&row.max)), (record.median, record.max));
        for (column, &bytes) in (0..).zip(&record.bytes) {
            let cell = cell(&mut coordinator, at, column).expect("a cell");
            assert_eq!(number(&cell.bytes), bytes);
            assert_eq!(cell.change.value, i128::from(bytes) - i128::from(record.median));
        }
    }
    // What rank 2 alone holds stands out: far above the median, and none elsewhere.
    let at = found.rows.iter().position(|row| row.site == "r_fsdp2.py:40 main").expect("a row");
    assert_eq!(&found.levels[at * 4..at * 4 + 4], "--i-");
    assert_eq!(found.rows[at].term, "site:r_fsdp2.py:40 main");
    assert_eq!(&found.cells[at * 4..at * 4 + 4], ["", "", "200.0 MiB", ""]);
    assert_eq!(found.columns[2].outlier, run.outliers[0].text);
    assert_eq!((cell(&mut coordinator, 999, 0), cell(&mut coordinator, 0, 4)), (None, None));

    // A card that comes again leaves the matrix as it is; without cards there is none.
    add(&mut coordinator, vec![(103, card(3))]);
    assert_eq!(matrix(&mut coordinator, None), Some(found));
    coordinator.handle(&RunRequest::View { id: 2, query: RunQuery::Clear {} });
    assert_eq!(matrix(&mut coordinator, None), None);
    assert_eq!(cell(&mut coordinator, 0, 0), None);
}

/// Bytes that are allocated for each card of a large matrix.
const MAX_BYTES_OF_CARD: u64 = 1 << 13;

#[test]
fn a_thousand_cards_are_compared_at_once() {
    let model = card(0);
    let stages = 8;
    let of = |rank: u32| {
        let mut card = model.clone();
        (card.path, card.rank) = (path(rank), Some(rank));
        let stage = (rank * stages / 1024) as usize;
        // Each stage holds other parts of the call sites, and ranks differ a little.
        for (at, of) in card.sites.iter_mut().enumerate() {
            let share = if at % stages as usize == stage { 9 } else { 1 };
            of.bytes.0 = of.bytes.0 * share + 5_000_000 * share + u64::from(rank % 5) * 1000;
        }
        let sum = |card: &Card| card.sites.iter().map(|of| of.bytes.0).sum::<u64>();
        if rank == 600 {
            let (site, bytes) = (card.names.sites.len() as u32, Bytes(sum(&card)));
            card.names.sites.push(CallSite { name: "eval.py:9 keep".to_owned(), has_frame: true });
            card.sites.push(SiteBytes { site, bytes });
        }
        card.bands[0].peak.0 = sum(&card) as i64;
        (rank, card)
    };
    let mut coordinator = Coordinator::default();
    add(&mut coordinator, (0..1024).map(of).collect());
    let mut found = None;
    let allocated = measure(|| found = matrix(&mut coordinator, Some(600))).bytes_total;
    let found = found.expect("a matrix");
    let counts: Vec<u32> = found.clusters.iter().map(|cluster| cluster.count).collect();
    assert_eq!(counts, [128; 8], "{:?}", found.text);
    let at = found.rows.iter().position(|row| row.site == "eval.py:9 keep").expect("a row");
    let levels = &found.levels[at * 1024..][..1024];
    assert_eq!(levels.find('i'), Some(600));
    assert_eq!(levels.matches('-').count(), 1023);
    assert!(found.text[1].starts_with("Rank 600 holds "), "{:?}", found.text);
    assert!(found.cells.is_empty());
    // A float for each pair of ranks alone would be that much.
    assert!(allocated < 1024 * MAX_BYTES_OF_CARD, "{allocated}");
}
