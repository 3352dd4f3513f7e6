//! Labels of grouped stacks, compared with the blocks that are live, and with picks.

use super::harness::{GPT, Opened, TARGET, open};
use std::collections::BTreeMap;
use vramscope_report::text::{category, place_of};
use vramscope_report::{block_site, state};
use vramscope_session::messages::views::{
    Answer, Bands, ColorBy, GroupBy, GroupLabel, Layer, Query,
};
use vramscope_session::messages::{AxisKind, Hit, Request, Response};

const SIZE: [f64; 2] = [900.0, 400.0];
const LETTER: [f64; 2] = [6.0, 9.0];

fn labels(opened: &mut Opened, group: GroupBy, axis: AxisKind, x: [f64; 2]) -> Vec<GroupLabel> {
    let y = [0.0, opened.report().trace().requested_band.peak as f64];
    let (size, letter) = (SIZE, LETTER);
    match opened.ask(Query::GroupLabels { group, axis, x, y, size, letter }) {
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

#[test]
fn labels_have_the_bytes_of_their_groups_at_the_peak() {
    for file in [GPT, "recorded/gpt_late.pickle.gz", "recorded/t20/resnet50_ok.pickle.gz"] {
        let mut opened = open(file);
        let at = opened.report();
        let slot = state::At::Peak.slot(at.trace()).expect("a peak");
        for group in [GroupBy::Category, GroupBy::Line] {
            let mut bytes: BTreeMap<(String, String), u64> = BTreeMap::new();
            for (index, block) in (0..).zip(&opened.report().trace().blocks) {
                if block.is_live_at(slot) {
                    let of = name(&opened, GroupBy::Category, index);
                    *bytes.entry((of, name(&opened, group, index))).or_default() += block.bytes.0;
                }
            }
            let view = whole(&opened);
            let labels = labels(&mut opened, group, AxisKind::Event, view);
            assert!(labels.len() >= 2, "{file} {group:?}: {labels:?}");
            for label in &labels {
                let (of, size) = label.text.rsplit_once(" · ").expect("a name and a size");
                assert!(size.ends_with(&label.bytes.text), "{label:?}");
                if size.starts_with("up to") {
                    continue;
                }
                let is_it = |(key, total): (&(String, String), &u64)| {
                    of.starts_with(&key.1) && i128::from(*total) == label.bytes.value
                };
                assert!(bytes.iter().any(is_it), "{file}: {label:?} of {bytes:?}");
            }
        }
    }
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
