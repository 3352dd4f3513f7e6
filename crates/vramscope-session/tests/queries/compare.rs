//! The comparison of two recordings, compared with the report of the command line.

use super::harness::{GPT, TARGET, ask, load_file, open_session, report_target};
use vramscope_layout::MERGED;
use vramscope_report::diff::{Diff, DiffValues, Pair};
use vramscope_report::peak::BandKind;
use vramscope_report::side::{Align, Side};
use vramscope_session::Coordinator;
use vramscope_session::messages::views::{
    Answer, CompareAnswer, CompareQuery, ComparedCurves, ComparedStacks, ComparedTree, Comparison,
    DetailCard, Query,
};
use vramscope_session::messages::{FrameRow, RunRequest, RunResponse, TileKey};
use vramscope_trace::slicing::now;
use vramscope_units::CountChange;

const LEAK: &str = "recorded/gpt_leak.pickle.gz";

/// The side of a file that a worker sends.
fn side(name: &str, band: BandKind) -> String {
    let (mut session, _) = open_session(name);
    answer!(session, Query::Side { band }, Text)
}

/// The side of a file that the command line compares.
fn report_side(name: &str, band: BandKind) -> Side {
    now(async |budget| Side::new(report_target(&load_file(name)), band, budget).await)
}

fn ask_coordinator(coordinator: &mut Coordinator, query: CompareQuery) -> CompareAnswer {
    match coordinator.handle(&RunRequest::Compare { id: 5, query }) {
        RunResponse::Compared { id: 5, answer } => answer,
        other => panic!("{other:?}"),
    }
}

fn compare(coordinator: &mut Coordinator, a: &str, b: &str, band: BandKind) -> Box<Comparison> {
    let query = CompareQuery::Sides { a: side(a, band), b: side(b, band) };
    match ask_coordinator(coordinator, query) {
        CompareAnswer::Comparison(Some(comparison)) => comparison,
        other => panic!("{other:?}"),
    }
}

fn stacks(coordinator: &mut Coordinator, text: &str, from: u32, count: u32) -> ComparedStacks {
    group(coordinator, text, "", from, count)
}

fn group(
    coordinator: &mut Coordinator,
    text: &str,
    group: &str,
    from: u32,
    count: u32,
) -> ComparedStacks {
    let (text, group) = (text.to_owned(), group.to_owned());
    let tree = ComparedTree::default();
    match ask_coordinator(coordinator, CompareQuery::Stacks { text, group, tree, from, count }) {
        CompareAnswer::Stacks(page) => page,
        other => panic!("{other:?}"),
    }
}

fn detail(coordinator: &mut Coordinator, row: u32) -> Option<Box<DetailCard>> {
    match ask_coordinator(coordinator, CompareQuery::Stack { row }) {
        CompareAnswer::Detail(card) => card,
        other => panic!("{other:?}"),
    }
}

#[test]
fn totals_and_stacks_equal_the_report() {
    for band in [BandKind::Requested, BandKind::Reserved] {
        let mut coordinator = Coordinator::default();
        let shown = compare(&mut coordinator, GPT, LEAK, band);
        let named =
            |name: &str| (name.to_owned(), vec![(name.to_owned(), report_side(name, band))]);
        let diff = Diff::new(named(GPT), named(LEAK), band, None, &[]);
        let pair: &Pair = diff.largest().expect("two files");
        assert_eq!(
            shown.record,
            Pair { stacks: None, stacks_left_out: 0, tree: None, ..pair.clone() }
        );
        let total = |key: &str| shown.view.totals.iter().find(|t| t.key == key).expect(key).clone();
        for kind in BandKind::ALL {
            for (when, change) in [("peak", pair.band(kind).peak), ("end", pair.band(kind).end)] {
                let row = total(&format!("{}.{when}", kind.name()));
                assert_eq!(row.values, DiffValues::Bytes(change), "{}", row.label);
                assert_eq!(row.percent, change.percent());
            }
        }
        assert_eq!(total("blocks").values, DiffValues::Count(pair.blocks));
        assert_eq!(total("findings").values, DiffValues::Count(pair.findings.count));
        assert_eq!(pair.findings.count.change, CountChange(1));
        assert_eq!(shown.view.new_labels.len(), pair.findings.new.len());

        let all = pair.stacks.as_ref().expect("the stacks of the only pair");
        let page = stacks(&mut coordinator, "", 0, u32::MAX);
        // Unchanged stacks are last, and folded.
        let same = group(&mut coordinator, "", "unchanged", 0, u32::MAX);
        assert_eq!((page.total + same.total) as usize, all.len());
        let of_groups: u32 = page.groups.iter().map(|g| g.count).sum();
        assert_eq!(of_groups as usize, all.len());
        for group_row in &page.groups {
            let listed = group(&mut coordinator, "", &group_row.key, 0, u32::MAX);
            assert_eq!(listed.total, group_row.count, "{}", group_row.key);
            let change: i64 = listed.rows.iter().map(|row| row.bytes.change.0).sum();
            assert_eq!(change, group_row.change.0, "{}", group_row.key);
        }
        for (row, stack) in page.rows.iter().zip(all) {
            assert_eq!(row.bytes, stack.bytes);
            assert_eq!((&row.site, row.blocks), (&stack.site, stack.blocks.change));
            assert!(row.share.abs() <= 1.0 && (row.share > 0.0) == (stack.bytes.change.0 > 0));
        }
    }
}

#[test]
fn comparison_names_settings_steps_and_input() {
    let mut coordinator = Coordinator::default();
    let (band, split) = (BandKind::Requested, "recorded/gpt_max_split.pickle.gz");
    let shown = compare(&mut coordinator, GPT, split, band);
    let pair = Pair::new(&report_side(GPT, band), &report_side(split, band));
    assert_eq!(shown.record, pair);
    let rows: Vec<[&str; 3]> =
        shown.view.recording.iter().map(|row| [&*row.name, &*row.a, &*row.b]).collect();
    assert!(rows.contains(&["max_split_size", "-1", "134217728"]), "{rows:?}");
    assert!(rows.contains(&["whole steps", "4", "6"]), "{rows:?}");
    let total = |key: &str| match shown.view.totals.iter().find(|t| t.key == key).expect(key).values
    {
        DiffValues::Bytes(of) => [of.a.0, of.b.0],
        DiffValues::Count(of) => [of.a.0, of.b.0],
    };
    assert_eq!(total("steps"), [4, 6]);
    assert_eq!(total("input_bytes_per_step")[0], 31_488);
}

#[test]
fn stacks_of_one_site_name_the_frame_that_distinguishes_them() {
    let mut coordinator = Coordinator::default();
    compare(&mut coordinator, GPT, LEAK, BandKind::Requested);
    let mut rows = stacks(&mut coordinator, "", 0, u32::MAX).rows;
    rows.extend(group(&mut coordinator, "", "unchanged", 0, u32::MAX).rows);
    let with_via = rows.iter().filter(|row| !row.via.is_empty()).count();
    assert!(with_via > 10 && with_via < rows.len(), "{with_via} of {}", rows.len());
    for row in &rows {
        let same: Vec<_> = rows.iter().filter(|other| other.site == row.site).collect();
        assert!(same.len() > 1 || row.via.is_empty(), "{row:?}");
        // `via` is a frame of the stack, and no two rows have equal labels.
        let frames =
            detail(&mut coordinator, row.row).and_then(|card| card.stack).expect("a stack").frames;
        let is_via =
            |f: &FrameRow| row.via == f.name || row.via == format!("{} {}", f.place, f.name);
        assert!(row.via.is_empty() || frames.iter().any(is_via), "{row:?}");
    }
    let mut names: Vec<_> = rows.iter().map(|row| (&row.site, &row.via)).collect();
    names.sort();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    // The filter finds `via`.
    let some = rows.iter().find(|row| !row.via.is_empty()).expect("a row with `via`");
    let found = stacks(&mut coordinator, &some.via, 0, u32::MAX);
    assert!(found.rows.iter().any(|row| row.row == some.row), "{some:?}");
}

#[test]
fn stacks_have_pages_a_filter_and_details() {
    let mut coordinator = Coordinator::default();
    let size = side(LEAK, BandKind::Requested).len();
    assert!(size < 1 << 17, "a side is much smaller than its file: {size} bytes");
    assert_eq!(stacks(&mut coordinator, "", 0, 9).total, 0, "no comparison yet");
    assert!(detail(&mut coordinator, 0).is_none());
    compare(&mut coordinator, GPT, LEAK, BandKind::Requested);
    let all = stacks(&mut coordinator, "", 0, u32::MAX);
    let page = stacks(&mut coordinator, "", 3, 4);
    assert_eq!((page.total, page.from, &page.rows[..]), (all.total, 3, &all.rows[3..7]));
    let kept = stacks(&mut coordinator, " P_GPT.py ", 0, 100);
    assert!(
        kept.total > 0 && kept.total <= all.total && kept.text.contains(" of "),
        "{}",
        kept.text
    );
    assert_eq!(stacks(&mut coordinator, "no such word", 0, 100).total, 0);
    let card = detail(&mut coordinator, all.rows[0].row).expect("the first row");
    assert_eq!(
        (card.kind.as_str(), card.title.value),
        ("Change", all.rows[0].bytes.change.0.into())
    );
    let frames = card.stack.expect("its stack").frames;
    assert_eq!((frames[0].name.as_str(), frames[0].line), ("train_step", 31));
    assert!(card.copy.contains("p_gpt.py:31"), "{}", card.copy);
    let unchanged = group(&mut coordinator, "", "unchanged", 0, 0).total;
    assert!(detail(&mut coordinator, all.total + unchanged).is_none());
    // An invalid side gives no comparison, and drops the previous one.
    let nothing = CompareQuery::Sides { a: "{}".to_owned(), b: String::new() };
    assert!(matches!(ask_coordinator(&mut coordinator, nothing), CompareAnswer::Comparison(None)));
    assert_eq!(stacks(&mut coordinator, "", 0, 9).total, 0);
}

/// The points of a path of `M x y`, `H x` and `V y` commands.
fn points(path: &str) -> Vec<(f64, f64)> {
    let (mut x, mut y, mut all) = (0.0, 0.0, Vec::new());
    let starts: Vec<usize> =
        path.char_indices().filter(|(_, c)| c.is_ascii_alphabetic()).map(|(i, _)| i).collect();
    for (n, &at) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(path.len());
        let number = |text: &str| text.parse::<f64>().expect("a number");
        match (&path[at..=at], &path[at + 1..end]) {
            ("M", both) => {
                let (left, top) = both.split_once(' ').expect("two numbers");
                (x, y) = (number(left), number(top));
            }
            ("H", to) => x = number(to),
            (_, to) => y = number(to),
        }
        all.push((x, y));
    }
    all
}

#[test]
fn curves_share_their_axes() {
    let mut coordinator = Coordinator::default();
    let shown = compare(&mut coordinator, GPT, LEAK, BandKind::Requested);
    let curves = |align: Align| -> &ComparedCurves {
        shown.view.curves.iter().find(|c| c.align == align).expect("curves")
    };
    let extent = |name: &str| f64::from(report_target(&load_file(name)).trace().slots());
    let by_event = curves(Align::Event);
    let (a, b) = (points(&by_event.a), points(&by_event.b));
    let right = |p: &[(f64, f64)]| p.iter().map(|p| p.0).fold(0.0, f64::max);
    // The longer curve fills the box, the other one its part.
    let parts = extent(GPT) / extent(LEAK);
    let (longer, shorter) =
        if parts < 1.0 { (right(&b), right(&a)) } else { (right(&a), right(&b)) };
    assert!((longer - 1200.0).abs() < 0.2, "{longer}");
    assert!((shorter / longer - parts.min(1.0 / parts)).abs() < 1e-3, "{shorter} of {longer}");
    // The higher peak is just below the top. The heights have the ratio of the peaks.
    let top = |p: &[(f64, f64)]| 200.0 - p.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let peaks = [GPT, LEAK].map(|name| {
        report_side(name, BandKind::Requested).figures(BandKind::Requested).peak as f64
    });
    assert!((top(&a) / top(&b) - peaks[0] / peaks[1]).abs() < 2e-3);
    assert!(top(&b) > 185.0 && top(&b) < 200.0);
    for align in [Align::Time, Align::Step] {
        let curves = curves(align);
        assert!(curves.missing.is_empty(), "{}", curves.missing);
        assert!((top(&points(&curves.b)) - top(&b)).abs() < 0.2, "every axis shows the peak");
        assert!(curves.x.iter().all(|m| (0.0..=1.0).contains(&m.at)) && curves.x.len() > 1);
        assert!(curves.y.iter().all(|m| (0.0..=1.0).contains(&m.at)) && curves.y.len() > 1);
    }
    assert!(
        curves(Align::Step).x.iter().any(|m| m.text == "step 2"),
        "{:?}",
        curves(Align::Step).x
    );
}

#[test]
fn missing_axis_has_a_reason() {
    let mut coordinator = Coordinator::default();
    // A recording of a release without times, and with a few allocations only.
    let shown = compare(
        &mut coordinator,
        "recorded/t20/linear_seed_python.pickle",
        GPT,
        BandKind::Requested,
    );
    let missing: Vec<&str> = shown.view.curves.iter().map(|c| c.missing.as_str()).collect();
    assert_eq!(missing, ["", "A was recorded without times", "No training steps were found in A"]);
    for a in [
        "edge/no_time.pickle",
        "edge/segments_only.pickle",
        "edge/overflow.pickle",
        "edge/times.pickle",
    ] {
        for band in BandKind::ALL {
            let shown = compare(&mut coordinator, a, GPT, band);
            assert!(
                !shown.view.curves[0].a.contains("NaN") && shown.view.curves[0].missing.is_empty(),
                "{a}"
            );
        }
    }
}

#[test]
fn a_node_of_the_flame_graph_holds_what_its_stacks_hold() {
    let mut coordinator = Coordinator::default();
    compare(&mut coordinator, GPT, LEAK, BandKind::Requested);
    for of_a in [false, true] {
        let tree = ComparedTree { of_a, hide_framework: true, ..ComparedTree::default() };
        let of = |coordinator: &mut Coordinator, node: u32| {
            let query = CompareQuery::Node { tree: tree.clone(), node };
            match ask_coordinator(coordinator, query) {
                CompareAnswer::Node(node) => node,
                other => panic!("{other:?}"),
            }
        };
        let mut nodes = 0;
        while let Some(node) = of(&mut coordinator, nodes) {
            nodes += 1;
            let rooted = ComparedTree { root: node.path.clone(), ..tree.clone() };
            let query = CompareQuery::Stacks {
                text: String::new(),
                group: String::new(),
                tree: rooted.clone(),
                from: 0,
                count: u32::MAX,
            };
            let CompareAnswer::Stacks(page) = ask_coordinator(&mut coordinator, query) else {
                panic!("a page")
            };
            let sum: i128 = page.rows.iter().map(|row| i128::from(row.bytes.change.0)).sum();
            assert_eq!(node.card.title.value, sum, "{}", node.title);
            let CompareAnswer::Tree(Some(flame)) =
                ask_coordinator(&mut coordinator, CompareQuery::Tree { tree: rooted })
            else {
                panic!("a graph")
            };
            let side = if of_a { "a" } else { "b" };
            let row = node.card.rows.iter().find(|row| row.key == side).expect("both sides");
            assert_eq!(row.raw, Some(flame.info.total.value.to_string()), "{}", node.title);
            assert_eq!(flame.text, node.text);
        }
        assert!(nodes > 20, "{nodes} nodes");
    }
}

#[test]
fn the_flame_graph_is_drawn_in_the_colors_of_the_changes() {
    let mut coordinator = Coordinator::default();
    compare(&mut coordinator, GPT, LEAK, BandKind::Requested);
    let tree = ComparedTree::default();
    // The scale at which all of the graph is in one tile.
    let tiles = vec![TileKey { kx: 31, ky: 16, ix: 0, iy: 0 }];
    let query = CompareQuery::Tiles { tree: tree.clone(), tiles };
    let CompareAnswer::Tiles(tiles) = ask_coordinator(&mut coordinator, query) else {
        panic!("tiles")
    };
    let [tile] = &tiles[..] else { panic!("one tile") };
    assert_eq!(tile.positions.len(), 4 * tile.blocks.len());
    let CompareAnswer::Tree(Some(flame)) =
        ask_coordinator(&mut coordinator, CompareQuery::Tree { tree: tree.clone() })
    else {
        panic!("a graph")
    };
    let mut seen = Vec::new();
    for (&block, color) in tile.blocks.iter().zip(&tile.colors) {
        let query = CompareQuery::Node { tree: tree.clone(), node: block & !MERGED };
        let CompareAnswer::Node(Some(node)) = ask_coordinator(&mut coordinator, query) else {
            panic!("a node")
        };
        let at = flame.colors.iter().position(|known| known == color).expect("a known color");
        let level = at as i128 - flame.colors.len() as i128 / 2;
        assert_eq!(level.signum(), node.card.title.value.signum(), "{}", node.title);
        seen.push(level.signum());
    }
    assert!([-1, 0, 1].iter().all(|sign| seen.contains(sign)), "{seen:?}");
}
