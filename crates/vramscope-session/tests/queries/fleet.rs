//! A run that the coordinator knows from an index.

use super::harness::{load_file_as, report_target};
use super::number;
use vramscope_inference::{Basis, CallSite};
use vramscope_report::card::{Card, CardFinding, Names, SiteBytes, StepBytes};
use vramscope_report::findings::FindingRecord;
use vramscope_report::index::{Entry, FailedFile, Writer};
use vramscope_report::{FindingKind, Quantity, Severity};
use vramscope_session::Coordinator;
use vramscope_session::messages::views::{
    Fleet, ListQuery, MAX_PARTS, Matrix, MatrixAnswer, MatrixQuery, Overview, RankList, RankSort,
    ReadIndex, RunQuery,
};
use vramscope_session::messages::{FileEntry, RunRequest, RunResponse};
use vramscope_trace::slicing::now;
use vramscope_units::{Blocks, Bytes, Iteration, PeakEvent, SignedBytes};

const MIB: u64 = 1 << 20;

fn mib(quantity: &Quantity) -> u64 {
    number(quantity) >> 20
}

/// The lines of an index.
fn index(entries: Vec<Entry>) -> String {
    let mut writer = Writer::default();
    let mut lines = vec![Writer::header("job", entries.len())];
    lines.extend(entries.into_iter().map(|entry| writer.line(entry).expect("it names its sites")));
    lines.push(Writer::done(0));
    lines.join("\n") + "\n"
}

fn read(coordinator: &mut Coordinator, text: &str, is_first: bool) -> ReadIndex {
    answer(coordinator, 7, text, is_first)
}

/// Reads text of the answer to a request.
fn answer(coordinator: &mut Coordinator, id: u32, text: &str, is_first: bool) -> ReadIndex {
    match coordinator.read_index(id, text.as_bytes(), is_first) {
        RunResponse::Indexed { id: of, read } if of == id => read,
        other => panic!("{other:?}"),
    }
}

/// Reads an index, and plans its files.
fn open(cards: Vec<Card>) -> (Coordinator, Overview) {
    let cards = cards.into_iter().map(|card| Ok(Box::new(card))).collect();
    let mut coordinator = Coordinator::default();
    let read = read(&mut coordinator, &index(cards), true);
    assert!(read.is_done && read.error.is_none() && read.progress.is_empty(), "{read:?}");
    plan(&mut coordinator, &read);
    let overview = overview(&mut coordinator);
    (coordinator, overview)
}

fn plan(coordinator: &mut Coordinator, read: &ReadIndex) {
    let file = |path: &str, bytes| FileEntry {
        path: path.to_owned(),
        bytes,
        skipped: false,
        closed: false,
    };
    let files = read.files.iter().map(|of| file(&of.path, of.bytes)).collect();
    coordinator.handle(&RunRequest::Plan { id: 1, files });
}

fn overview(coordinator: &mut Coordinator) -> Overview {
    let query = RunQuery::Cards { cards: Vec::new() };
    match coordinator.handle(&RunRequest::View { id: 2, query }) {
        RunResponse::Overview { id: 2, overview } => overview,
        other => panic!("{other:?}"),
    }
}

fn list(coordinator: &mut Coordinator, query: ListQuery) -> RankList {
    match coordinator.handle(&RunRequest::List { id: 3, query }) {
        RunResponse::List { id: 3, list } => list,
        other => panic!("{other:?}"),
    }
}

fn fleet(coordinator: &mut Coordinator, sizes: &str) -> Option<Box<Fleet>> {
    let request = RunRequest::Fleet { id: 4, key: None, sizes: sizes.to_owned(), capacity: None };
    match coordinator.handle(&request) {
        RunResponse::Fleet { id: 4, fleet } => fleet,
        other => panic!("{other:?}"),
    }
}

fn matrix(coordinator: &mut Coordinator, by_step: bool) -> Matrix {
    let query = MatrixQuery::Show { key: None, by_step };
    match coordinator.handle(&RunRequest::Matrix { id: 5, query }) {
        RunResponse::Matrix { id: 5, answer: MatrixAnswer::Matrix(Some(matrix)) } => *matrix,
        other => panic!("{other:?}"),
    }
}

/// A rank of one of four stages, which holds memory at five call sites and grows from step to step.
/// The rest of the card is that of `model`.
fn made_up(model: &Card, rank: u32, iteration: u64) -> Card {
    let stage = u64::from(rank) / 16;
    let bytes = Bytes((100 + 40 * stage + u64::from(rank % 16)) * MIB);
    let peak = 5 * bytes.0 + iteration * MIB;
    let mut band = model.bands[0];
    band.peak = SignedBytes(peak as i64);
    band.peak_event = PeakEvent(5);
    band.end = SignedBytes(peak as i64 / 2);
    let step = |missing: u64| StepBytes { peak: Bytes(peak - missing * MIB), floor: Bytes(0) };
    Card {
        path: format!("job/iteration_{iteration}/rank{rank}.pickle"),
        rank: Some(rank),
        iteration: Some(Iteration(iteration)),
        bands: [band; 4],
        capacity: Some(Bytes(2 << 30)),
        categories: Vec::new(),
        sites: (0..5).map(|site| SiteBytes { site, bytes }).collect(),
        stacks: Vec::new(),
        kept_sites: Vec::new(),
        findings: Vec::new(),
        names: Names {
            sites: (0..5)
                .map(|layer| CallSite {
                    name: format!("model.py:{layer} stage_{stage}"),
                    has_frame: true,
                })
                .collect(),
            stacks: Vec::new(),
        },
        first_step: 3,
        steps: [2, 1, 0].map(step).into(),
        ..model.clone()
    }
}

fn model() -> Card {
    let file = load_file_as("rank0.pickle", "recorded/t26/linear_seed_python.pickle");
    now(async |budget| Card::new(report_target(&file), budget).await)
}

fn job() -> Vec<Card> {
    let model = &model();
    let of = |iteration| (0..64).map(move |rank| made_up(model, rank, iteration));
    of(0).chain(of(100)).collect()
}

#[test]
fn cards_of_an_index_give_what_the_snapshots_give() {
    let path = |rank: u32| format!("rank{rank}_memory_snapshot.pickle");
    let file = |rank: u32| {
        load_file_as(&path(rank), &format!("findings/ranks_fsdp2_skew/{}.gz", path(rank)))
    };
    let files: Vec<_> = (0..4).map(file).collect();
    let cards = files
        .iter()
        .map(|file| now(async |budget| Card::new(report_target(file), budget).await))
        .collect();
    let (_, overview) = open(cards);
    let cards =
        files.iter().map(|file| now(async |budget| Card::new(report_target(file), budget).await));
    let reported = vramscope_report::findings::across(cards.collect());
    let records = reported.iter().map(|entry| &entry.record);
    let skews: Vec<_> = records.filter(|a| a.kind == FindingKind::RankSkew).collect();
    assert!(!skews.is_empty(), "rank 2 holds more than the others");
    let words = |a: &FindingRecord| (a.id.clone(), a.path.clone(), a.text.clone());
    let found: Vec<_> = overview.outliers.iter().map(|f| words(&f.record)).collect();
    assert_eq!(found, skews.into_iter().map(words).collect::<Vec<_>>());
    // The findings of the cards are there, too.
    let own = reported.len() - found.len();
    assert_eq!(
        overview.groups.iter().map(|group| group.members.len()).sum::<usize>(),
        own + found.len()
    );
    for (rank, (file, shown)) in files.iter().zip(&overview.rows).enumerate() {
        let (card, row) = (&shown.card, &shown.row);
        let band = report_target(file).trace().requested_band;
        assert_eq!(card.bands[0].peak.0, band.peak);
        assert_eq!((&*card.path, row.key), (&*path(rank as u32), rank as u32 * MAX_PARTS));
        assert!(shown.indexed && row.spark.starts_with('M') && !card.categories.is_empty());
    }
}

#[test]
fn lines_come_in_parts_and_a_file_without_a_card_is_named() {
    let mut entries: Vec<Entry> = job().into_iter().map(|card| Ok(Box::new(card))).collect();
    let failed = FailedFile::new("job/iteration_0/rank64.pickle", Bytes(12), "it is cut off");
    entries.push(Err(failed));
    let text = index(entries);
    let mut coordinator = Coordinator::default();
    let half = text.len() / 2;
    let first = read(&mut coordinator, &text[..half], true);
    assert!(!first.is_done && first.progress.ends_with(" of 129 ranks"), "{}", first.progress);
    plan(&mut coordinator, &first);
    let shown = overview(&mut coordinator).cards as usize;
    assert_eq!(shown, first.files.len());
    let rest = read(&mut coordinator, &text[half..], false);
    assert!(rest.is_done && rest.progress.is_empty());
    assert_eq!(rest.next, None, "an index that is whole has no rest to ask for");
    let failed = rest.files.last().expect("the last file");
    assert_eq!(failed.error.as_deref(), Some("it is cut off"));
    assert_eq!(first.files.len() + rest.files.len(), 129);
    // The cards of files that are not planned yet wait.
    assert_eq!(overview(&mut coordinator).cards as usize, shown);
    let wrong = read(&mut coordinator, "{\"schema\":\"other/1\"}\n", true);
    assert!(wrong.error.expect("another schema").contains("other/1"));
    assert_eq!(overview(&mut coordinator).cards, 0);
}

#[test]
fn the_list_has_the_last_iteration_until_another_one_is_chosen() {
    let (mut coordinator, overview) = open(job());
    let keys = |of: std::ops::Range<u32>| of.map(|file| file * MAX_PARTS).collect::<Vec<_>>();
    assert_eq!((overview.cards, overview.list.iteration), (128, Some(1)));
    assert_eq!(overview.list.order, keys(64..128));
    assert!(!overview.list.is_whole && overview.list.text.is_empty());
    assert_eq!(overview.list.peaks, "Peak per rank: 600.0 MiB to 1.25 GiB");
    let query = ListQuery { iteration: Some("0".into()), ..ListQuery::default() };
    let before = list(&mut coordinator, query.clone());
    assert_eq!((before.order, before.iteration), (keys(0..64), Some(0)));
    let filtered = ListQuery { filter: "cluster:2 <745MiB".to_owned(), ..query.clone() };
    let found = list(&mut coordinator, filtered);
    assert_eq!((found.order, &*found.text), (keys(16..25), "9 of 64 ranks"));
    let sorted = ListQuery { sort: RankSort::Peak, descending: true, ..query };
    assert_eq!(list(&mut coordinator, sorted).order[..2], [63 * MAX_PARTS, 62 * MAX_PARTS]);
    let RunResponse::Rows { rows, .. } =
        coordinator.handle(&RunRequest::Rows { id: 9, keys: vec![63 * MAX_PARTS, 1] })
    else {
        panic!("no rows")
    };
    let [shown] = &*rows else { panic!("{rows:?}") };
    assert_eq!(shown.card.bands[0].peak.0 >> 20, 1175);
}

#[test]
fn the_rank_to_look_at_first_is_of_the_iteration_that_is_shown() {
    let record = |bytes: u64| FindingRecord {
        id: format!("growth-0-{bytes}").parse().expect("an id"),
        kind: FindingKind::Growth,
        severity: Severity::High,
        path: String::new(),
        rank: None,
        device: 0,
        title: "growth".to_owned(),
        text: String::new(),
        action: String::new(),
        place: None,
        why: String::new(),
        bytes: Bytes(bytes),
        saving_bytes: None,
        step: None,
        phase: None,
        basis: Basis::Recorded,
        events: Vec::new(),
        sites: vec![format!("train.py:{bytes} step")],
        called_from: Vec::new(),
        blocks: Blocks(1),
        children: Vec::new(),
        fixes: Vec::new(),
        look: Vec::new(),
        holders: Vec::new(),
        simulated: Vec::new(),
        proof: None,
    };
    let growth =
        |bytes: u64| CardFinding { record: record(bytes), place: String::new(), leads: true };
    let mut cards = job();
    cards[3].findings.push(growth(900 * MIB));
    cards[64 + 5].findings.push(growth(300 * MIB));
    let (_, overview) = open(cards);
    assert_eq!(overview.worst, Some((64 + 5) * MAX_PARTS));
    assert_eq!(overview.groups.len(), 2, "the findings of all iterations are listed");
}

#[test]
fn the_picture_has_peaks_clusters_and_iterations() {
    let (mut coordinator, _) = open(job());
    let all = fleet(&mut coordinator, "4/4/4").expect("64 ranks");
    assert_eq!(all.bars.iter().map(|bar| bar.count).sum::<u32>(), 64);
    assert!(all.bars.iter().all(|bar| bar.tops.is_sorted() && bar.x0 < bar.x1 && bar.x1 <= 1.0));
    let capacity = all.capacity.expect("the cards know it");
    assert_eq!((capacity.at, &*capacity.text), (1.0, "capacity 2.00 GiB, beyond the scale"));
    let clusters: Vec<_> = all
        .clusters
        .iter()
        .map(|of| (&*of.text, &*of.place, number(&of.count), mib(&of.max)))
        .collect();
    assert_eq!(
        clusters,
        [
            ("ranks 0-15", "pp 0", 16, 675),
            ("ranks 16-31", "pp 1", 16, 875),
            ("ranks 32-47", "pp 2", 16, 1075),
            ("ranks 48-63", "pp 3", 16, 1275),
        ]
    );
    assert!(
        all.is_sized && all.sizes.starts_with("rank = (pp x 4 + dp) x 4 + tp"),
        "{}",
        all.sizes
    );
    let iterations: Vec<_> =
        all.iterations.iter().map(|of| (of.iteration.0, mib(&of.max), of.at)).collect();
    assert_eq!(iterations, [(0, 1175, 0.0), (100, 1275, 1.0)]);
    assert!(all.max_path.starts_with("M0 ") && all.median_path.contains('L'));
    // A bar's filter shows its ranks.
    for bar in &all.bars {
        let query = ListQuery { filter: bar.filter.clone(), ..ListQuery::default() };
        assert_eq!(list(&mut coordinator, query).order.len() as u32, bar.count, "{}", bar.filter);
    }
    for (sizes, text) in [
        ("4/4/8", "4 x 4 x 8 are 128 ranks, and the run has 64"),
        ("4/4", "Expected three sizes, such as 64/4/4"),
        ("0/4/4", "Expected three sizes, such as 64/4/4"),
        ("", ""),
    ] {
        let other = fleet(&mut coordinator, sizes).expect("64 ranks");
        assert_eq!((other.is_sized, &*other.sizes), (false, text));
        assert!(other.clusters.iter().all(|of| of.place.is_empty()));
    }
    let (mut few, _) = open((0..4).map(|rank| made_up(&model(), rank, 0)).collect());
    assert!(fleet(&mut few, "").is_none());
}

#[test]
fn the_matrix_has_steps() {
    let (mut coordinator, _) = open(job());
    let sites = matrix(&mut coordinator, false);
    assert!(!sites.by_step && sites.has_steps && sites.rows.len() == 20);
    let steps = matrix(&mut coordinator, true);
    assert!(steps.by_step);
    let rows: Vec<_> = steps.rows.iter().map(|row| (&*row.site, mib(&row.max))).collect();
    assert_eq!(rows, [("step 3", 1273), ("step 4", 1274), ("step 5", 1275)]);
    assert_eq!(steps.columns, sites.columns);
    assert_eq!((steps.levels.len(), &*steps.omitted), (3 * 64, ""));
    let RunResponse::Matrix { answer: MatrixAnswer::Cell(Some(cell)), .. } = coordinator
        .handle(&RunRequest::Matrix { id: 6, query: MatrixQuery::Cell { row: 2, column: 63 } })
    else {
        panic!("no cell")
    };
    assert_eq!((mib(&cell.bytes), &*cell.site), (1275, "step 5"));
    assert_eq!(cell.lines.last().map(String::as_str), Some("Click to read the file of rank 63"));
}

#[test]
fn iterations_beyond_32_bits_stay_apart() {
    let large = u64::from(u32::MAX) + 1;
    let cards = [0, large].map(|of| made_up(&model(), 3, of));
    let (mut coordinator, overview) = open(cards.into());
    // As numbers of 32 bits both would be 0.
    assert_eq!((overview.list.iteration, overview.list.order), (Some(1), vec![MAX_PARTS]));
    let query = ListQuery { iteration: Some(large.to_string()), ..ListQuery::default() };
    assert_eq!(list(&mut coordinator, query).order, [MAX_PARTS]);
    let query = ListQuery { iteration: Some("0".into()), ..ListQuery::default() };
    assert_eq!(list(&mut coordinator, query).order, [0]);
}

#[test]
fn a_card_that_cannot_be_used_is_the_error_of_its_file() {
    let entries = job().into_iter().take(2).map(|card| Ok(Box::new(card))).collect();
    let text = index(entries).replacen("\"capacity\":2147483648", "\"capacity\":\"2 GiB\"", 1);
    let mut coordinator = Coordinator::default();
    let read = read(&mut coordinator, &text, true);
    assert_eq!(read.error, None);
    let errors: Vec<_> = read.files.iter().map(|of| (&*of.path, of.error.as_deref())).collect();
    let [(path, Some(why)), (_, None)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(*path, "job/iteration_0/rank0.pickle");
    assert!(
        why.starts_with("its card in line 2 is unusable: invalid type: string \"2 GiB\""),
        "{why}"
    );
    // The names of its call sites count for the cards after it.
    plan(&mut coordinator, &read);
    assert_eq!(overview(&mut coordinator).cards, 1);
}

/// A part of the cards of a server, with the number to ask from next.
fn part(entries: Vec<Entry>, next: u64) -> String {
    let header = Writer::header_of_part("job", 4, next);
    index(entries).replacen(&Writer::header("job", 1), &header, 1)
}

/// Once the higher of two peaks won, also if it was that of an older version of the file.
#[test]
fn a_later_answer_takes_the_place_of_the_cards_of_its_files() {
    let model = model();
    let card = |rank, iteration| Ok(Box::new(made_up(&model, rank, iteration)));
    let mut coordinator = Coordinator::default();
    let high = Card { path: made_up(&model, 1, 0).path, ..made_up(&model, 63, 0) };
    let high_peak = high.bands[0].peak.0 as u64;
    let mut found = Vec::new();
    for (id, entry) in [(1, card(0, 0)), (2, Ok(Box::new(high))), (3, card(2, 0))] {
        let read = answer(&mut coordinator, id, &part(vec![entry], u64::from(id) + 1), id == 1);
        assert_eq!((read.next, read.files.len()), (Some(f64::from(id) + 1.0), 1), "{read:?}");
        found.extend(read.files);
    }
    // Each answer has call sites of its own, also before the files are planned.
    plan(&mut coordinator, &ReadIndex { files: found, ..ReadIndex::default() });
    let peaks = |coordinator: &mut Coordinator| -> Vec<u64> {
        list(coordinator, ListQuery::default());
        let rows = coordinator
            .handle(&RunRequest::Rows { id: 9, keys: vec![0, MAX_PARTS, 2 * MAX_PARTS] });
        let RunResponse::Rows { rows, .. } = rows else { panic!("{rows:?}") };
        rows.iter().map(|row| row.card.bands[0].peak.0 as u64).collect()
    };
    let peak = |rank| made_up(&model, rank, 0).bands[0].peak.0 as u64;
    assert_eq!(peaks(&mut coordinator), [peak(0), high_peak, peak(2)]);
    assert!(peak(1) < high_peak);
    let read = answer(&mut coordinator, 4, &part(vec![card(1, 0)], 5), false);
    assert_eq!((read.next, read.files.len()), (Some(5.0), 1));
    assert_eq!(peaks(&mut coordinator), [peak(0), peak(1), peak(2)]);
    // A file that cannot be read any more has no card.
    let path = made_up(&model, 1, 0).path;
    let failed = vec![Err(FailedFile::new(&path, Bytes(3), "no snapshot"))];
    let read = answer(&mut coordinator, 5, &part(failed, 6), false);
    assert_eq!(read.files[0].error.as_deref(), Some("no snapshot"));
    assert_eq!(peaks(&mut coordinator), [peak(0), peak(2)]);
}
