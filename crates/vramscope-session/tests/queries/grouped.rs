//! Labels of grouped stacks, compared with the blocks that are live, and with picks.

use super::harness::{GPT, Opened, TARGET, open};
use std::collections::BTreeMap;
use vramscope_layout::Color;
use vramscope_report::block_site;
use vramscope_report::text::{category, place_of};
use vramscope_session::messages::views::{
    Answer, Bands, ColorBy, GroupBy, GroupLabel, Layer, Query,
};
use vramscope_session::messages::{AxisKind, Hit, Request, Response};

const SIZE: [f64; 2] = [900.0, 400.0];
const LETTER: [f64; 2] = [6.0, 9.0];

fn labels(opened: &mut Opened, group: GroupBy, axis: AxisKind, x: [f64; 2]) -> Vec<GroupLabel> {
    let y = [0.0, opened.report().trace().requested_band.peak as f64];
    let (size, letter) = (SIZE, LETTER);
    let search = String::new();
    match opened.ask(Query::GroupLabels { group, axis, x, y, size, letter, search }) {
        Answer::GroupLabels(labels) => labels,
        other => panic!("{other:?}"),
    }
}

fn whole(opened: &Opened) -> [f64; 2] {
    [0.0, f64::from(opened.report().trace().slots())]
}

fn pick(opened: &mut Opened, group: GroupBy, slot: f64, bytes: f64) -> Option<Hit> {
    let (color, search) = (ColorBy::Category, String::new());
    let layer = Layer::Timeline { group, color, bands: Bands::NONE, search };
    // The page's columns, and single bytes.
    let kx = (f64::from(opened.report().trace().slots()) / SIZE[0]).log2().ceil() as u8;
    let axis = AxisKind::Event;
    opened.session.post(Request::Pick {
        id: 3,
        target: TARGET,
        axis,
        layer,
        kx,
        ky: 0,
        slot,
        bytes,
        hover: false,
    });
    match opened.session.step().expect("a reply").response {
        Response::Picked { hit, .. } => hit,
        other => panic!("{other:?}"),
    }
}

/// The name of a block's group, without its category.
fn name(opened: &Opened, group: GroupBy, block: u32) -> String {
    let at = opened.report();
    let of = &at.trace().blocks[block as usize];
    match group {
        GroupBy::Category => category(at.entry.categories(at.index).get(block).category).to_owned(),
        _ => match at.entry.sites.get(of.stack).frame {
            Some(frame) => place_of(at.snapshot(), frame).unwrap_or_default(),
            None => block_site(at, of),
        },
    }
}

/// The least and the most live bytes of each group over the window, by category and name.
fn extremes(opened: &Opened, group: GroupBy) -> BTreeMap<(String, String), [u64; 2]> {
    let at = opened.report();
    let trace = at.trace();
    let key = |block| (name(opened, GroupBy::Category, block), name(opened, group, block));
    let keys: Vec<(String, String)> = (0..trace.blocks.len() as u32).map(key).collect();
    let mut now: BTreeMap<&(String, String), u64> = keys.iter().map(|key| (key, 0)).collect();
    for (key, block) in keys.iter().zip(&trace.blocks) {
        *now.get_mut(key).expect("all keys") += if block.is_live_at(0) { block.bytes.0 } else { 0 };
    }
    let mut found: BTreeMap<_, _> =
        now.iter().map(|(&key, &bytes)| (key.clone(), [bytes; 2])).collect();
    for change in trace.changes_in(1..trace.slots()) {
        let key = &keys[change.block() as usize];
        let bytes = trace.blocks[change.block() as usize].bytes.0;
        let sum = now.get_mut(key).expect("all keys");
        *sum = if change.enters() { *sum + bytes } else { *sum - bytes };
        let [least, most] = found.get_mut(key).expect("all keys");
        (*least, *most) = ((*least).min(*sum), (*most).max(*sum));
    }
    found
}

#[test]
fn labels_have_the_most_bytes_of_their_groups_in_view() {
    for file in [GPT, "recorded/gpt_late.pickle.gz", "recorded/t20/resnet50_ok.pickle.gz"] {
        let mut opened = open(file);
        for group in [GroupBy::Category, GroupBy::Line] {
            let bytes = extremes(&opened, group);
            let view = whole(&opened);
            let labels = labels(&mut opened, group, AxisKind::Event, view);
            assert!(labels.len() >= 2, "{file} {group:?}: {labels:?}");
            for label in &labels {
                let (of, size) = label.text.rsplit_once(" · ").expect("a name and a size");
                assert!(size.ends_with(&label.bytes.text), "{label:?}");
                let is_it = |(key, [least, most]): (&(String, String), &[u64; 2])| {
                    of.starts_with(&key.1)
                        && i128::from(*most) == label.bytes.value
                        && size.starts_with("up to ") == (least < most)
                };
                assert!(bytes.iter().any(is_it), "{file}: {label:?} of {bytes:?}");
            }
        }
    }
}

// The label of a band gave its bytes at the largest total, also where the band is higher elsewhere.
#[test]
fn labels_of_a_part_have_the_bytes_of_that_part() {
    let mut opened = open(GPT);
    let [_, end] = whole(&opened);
    let of = |labels: &[GroupLabel]| {
        let found = labels.iter().find(|label| label.text.starts_with("activations"));
        found.map(|label| label.bytes.value)
    };
    let all = of(&labels(&mut opened, GroupBy::Category, AxisKind::Event, [0.0, end]));
    let parts: Vec<Option<i128>> = (0..8)
        .map(|part| [f64::from(part) / 8.0 * end, f64::from(part + 1) / 8.0 * end])
        .map(|x| of(&labels(&mut opened, GroupBy::Category, AxisKind::Event, x)))
        .collect();
    assert!(all.is_some() && parts.contains(&all), "{all:?} of {parts:?}");
    assert!(parts.iter().flatten().any(|&bytes| Some(bytes) < all), "{parts:?}");
}

#[test]
fn labels_lie_in_their_bands() {
    let mut opened = open(GPT);
    let [from, to] = whole(&opened);
    let mut picked = 0;
    for group in [GroupBy::Category, GroupBy::Line, GroupBy::Module] {
        let labels = labels(&mut opened, group, AxisKind::Event, [from, to]);
        for (i, label) in labels.iter().enumerate() {
            assert!(label.x.0 < label.x.1 && label.y.0 < label.y.1, "{label:?}");
            let is_clear = |other: &GroupLabel| {
                label.x.1 <= other.x.0
                    || other.x.1 <= label.x.0
                    || label.y.1 <= other.y.0
                    || other.y.1 <= label.y.0
            };
            assert!(labels[i + 1..].iter().all(is_clear), "{label:?} overlaps another label");
            if group == GroupBy::Module || label.beside.is_some() {
                continue;
            }
            for share in [0.02, 0.5, 0.98] {
                let slot = label.x.0 + (label.x.1 - label.x.0) * share;
                for bytes in [label.y.0 + 1.0, label.y.1 - 1.0] {
                    if slot >= to {
                        continue;
                    }
                    let hit = pick(&mut opened, group, slot, bytes).expect("a block of the band");
                    let name = name(&opened, group, hit.block);
                    assert!(label.text.starts_with(&name), "{label:?}: {name} at {slot}, {bytes}");
                    picked += 1;
                }
            }
        }
    }
    assert!(picked >= 30, "{picked}");
}

#[test]
fn labels_say_what_the_view_shows() {
    let mut opened = open(GPT);
    let [_, end] = whole(&opened);
    // Where a group has no bytes at the largest total, the label has its most bytes.
    let all: Vec<GroupLabel> = [[0.0, end / 2.0], [end / 2.0, end], [0.0, end]]
        .into_iter()
        .flat_map(|x| labels(&mut opened, GroupBy::Category, AxisKind::Event, x))
        .collect();
    assert!(all.iter().any(|label| label.text.contains(" · up to ")), "{all:?}");
    let time = opened.loaded.parts[0].devices[0].axes[1].extent;
    assert!(!labels(&mut opened, GroupBy::Line, AxisKind::Time, [0.0, time]).is_empty());
    assert_eq!(labels(&mut opened, GroupBy::Block, AxisKind::Event, [0.0, end]), []);
    assert_eq!(labels(&mut opened, GroupBy::Line, AxisKind::Event, [end * 2.0, end * 3.0]), []);
}

#[test]
fn tooltip_of_a_band_names_its_group() {
    let mut opened = open(GPT);
    let x = whole(&opened);
    let layer = |group| Layer::Timeline {
        group,
        color: ColorBy::Category,
        bands: Bands::NONE,
        search: String::new(),
    };
    let label = labels(&mut opened, GroupBy::Category, AxisKind::Event, x)
        .into_iter()
        .find(|label| label.text.starts_with("activations"))
        .expect("a band of activations");
    let slot = f64::midpoint(label.x.0, label.x.1);
    let bytes = f64::midpoint(label.y.0, label.y.1);
    // Rows of 256 MiB merge the blocks of the band, but not with other bands.
    let (kx, ky, axis) = (3, 28, AxisKind::Event);
    let layer = layer(GroupBy::Category);
    opened.session.post(Request::Pick {
        id: 3,
        target: TARGET,
        axis,
        layer,
        kx,
        ky,
        slot,
        bytes,
        hover: false,
    });
    let reply = opened.session.step().expect("a reply").response;
    let Response::Picked { hit: Some(hit), .. } = reply else { panic!("{reply:?}") };
    assert!(hit.count > 1 && hit.site == "activations, largest blocks:", "{hit:?}");
}

#[test]
fn labels_of_a_search_have_the_bytes_of_its_hits() {
    let mut opened = open(GPT);
    let view = whole(&opened);
    let all = labels(&mut opened, GroupBy::Category, AxisKind::Event, view);
    let search = "gpt.py:43 forward";
    let lit: Vec<(String, i128)> = {
        let at = opened.report();
        let of_search = |block: &vramscope_trace::Block| block_site(at, block) == search;
        let most = |category: &str| {
            let is_it = |&(index, block): &(u32, &vramscope_trace::Block)| {
                of_search(block) && name(&opened, GroupBy::Category, index) == category
            };
            let blocks: Vec<_> = (0..).zip(&at.trace().blocks).filter(is_it).collect();
            let sum = |slot| {
                let live = blocks.iter().filter(|(_, block)| block.is_live_at(slot));
                live.map(|(_, block)| i128::from(block.bytes.0)).sum::<i128>()
            };
            (0..at.trace().slots()).map(sum).max().unwrap_or(0)
        };
        let names = (0..).zip(&at.trace().blocks).filter(|(_, block)| of_search(block));
        let names: std::collections::BTreeSet<String> =
            names.map(|(index, _)| name(&opened, GroupBy::Category, index)).collect();
        names.into_iter().map(|name| (name.clone(), most(&name))).collect()
    };
    assert!(!lit.is_empty());
    let y = [0.0, opened.report().trace().requested_band.peak as f64];
    let query = Query::GroupLabels {
        group: GroupBy::Category,
        axis: AxisKind::Event,
        x: view,
        y,
        size: SIZE,
        letter: LETTER,
        search: format!("\"site:{search}\""),
    };
    let found = match opened.ask(query) {
        Answer::GroupLabels(labels) => labels,
        other => panic!("{other:?}"),
    };
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?}");
    for label in found {
        let (of, _) = label.text.rsplit_once(" · ").expect("a name and a size");
        assert!(lit.contains(&(of.to_owned(), label.bytes.value)), "{label:?} of {lit:?}");
        let whole = all.iter().find(|one| one.group == label.group).expect("a label without it");
        let share = label.bytes.value as f64 / whole.bytes.value as f64;
        let shown = Color::from_word(label.color).share();
        assert!((shown - share).abs() < 0.01, "{label:?}: {shown} {share}");
    }
}

#[test]
fn terms_of_a_block_choose_its_group() {
    let mut opened = open(GPT);
    let at = opened.report();
    let count = at.trace().blocks.len() as u32;
    for block in (0..count).step_by(count as usize / 25) {
        for group in [GroupBy::Block, GroupBy::Category, GroupBy::Line, GroupBy::Module] {
            let terms = match opened.ask(Query::GroupTerms { block, group }) {
                Answer::GroupTerms(terms) => terms,
                other => panic!("{other:?}"),
            };
            // Without groups a click chooses the block itself.
            if group == GroupBy::Block {
                assert_eq!(terms, Vec::<String>::new());
                continue;
            }
            let text =
                terms.iter().map(|term| vramscope_report::search::quoted(term)).collect::<Vec<_>>();
            let found = opened.chosen(&text.join(" "));
            assert!(found.contains(&block), "{group:?}: {terms:?}");
            if group == GroupBy::Module {
                continue; // all calls of a module, which may have several callers
            }
            let at = opened.report();
            let of = |one: u32| match group {
                GroupBy::Line => (
                    name(&opened, GroupBy::Category, one),
                    block_site(at, &at.trace().blocks[one as usize]),
                ),
                _ => (name(&opened, GroupBy::Category, one), String::new()),
            };
            let expected: Vec<u32> = (0..count).filter(|&one| of(one) == of(block)).collect();
            assert_eq!(found, expected, "{group:?}: {terms:?}");
        }
    }
}

#[test]
fn a_block_has_its_place_in_the_stack() {
    let mut opened = open(GPT);
    let [from, to] = whole(&opened);
    let at = opened.report();
    let (trace, count) = (at.trace(), at.trace().blocks.len() as u32);
    let lives: Vec<(u32, u32, u32)> = (0..count)
        .step_by(count as usize / 40)
        .map(|block| {
            let it = &trace.blocks[block as usize];
            (block, it.enters, it.leaves)
        })
        .collect();
    for (block, enters, leaves) in lives {
        // A zoom to single slots, where a pick finds each block.
        let slot = f64::from(enters) + 0.5;
        let x = [f64::from(enters.saturating_sub(40)), f64::from(enters + 40).min(to).max(from)];
        let query = Query::BlockRun {
            block,
            group: GroupBy::Category,
            axis: AxisKind::Event,
            x,
            width: SIZE[0],
            slot,
        };
        let run = match opened.ask(query) {
            Answer::BlockRun(run) => run.expect("the block is live in view"),
            other => panic!("{other:?}"),
        };
        assert!(run.x.0 <= slot && slot < run.x.1 && run.x.1 <= f64::from(leaves), "{run:?}");
        let bytes = opened.report().trace().blocks[block as usize].bytes.0 as f64;
        assert_eq!(run.y.1 - run.y.0, bytes);
        if bytes > 0.0 {
            let middle = f64::midpoint(run.y.0, run.y.1);
            let hit = pick_slot(&mut opened, slot, middle).expect("a strip is drawn there");
            assert_eq!((hit.block, hit.count), (block, 1));
        }
    }
}

/// The block at a slot and a height, in columns of one slot and rows of one byte.
fn pick_slot(opened: &mut Opened, slot: f64, bytes: f64) -> Option<Hit> {
    let (color, search, group) = (ColorBy::Stack, String::new(), GroupBy::Category);
    let layer = Layer::Timeline { group, color, bands: Bands::NONE, search };
    let axis = AxisKind::Event;
    let (id, target, hover) = (4, TARGET, false);
    opened.session.post(Request::Pick {
        id,
        target,
        axis,
        layer,
        kx: 0,
        ky: 0,
        slot,
        bytes,
        hover,
    });
    match opened.session.step().expect("a reply").response {
        Response::Picked { hit, .. } => hit,
        other => panic!("{other:?}"),
    }
}
