//! Stacks whose blocks lie in groups, and the labels of their bands.

use super::{Queries, Subject};
use crate::messages::views::{BlockRun, GroupBy, GroupLabel, Side};
use crate::scheduler::SLICE;
use std::cmp::Reverse;
use std::sync::{Arc, Weak};
use vramscope_layout as layout;
use vramscope_layout::{
    Axis, Band, Color, Colors, GroupEdges, Place, StackOrder, Timeline, View, block_run,
};
use vramscope_report::search::Matcher;
use vramscope_report::{GroupKind, Groups, Quantity, Target};
use vramscope_trace::slicing::{Budget, SlicedTask};
use vramscope_units::Bytes;

/// Space on both sides of a label, in letters.
const PADDING: f64 = 2.0;

/// The stacks of one device, by what their blocks are grouped by.
#[derive(Default)]
pub(crate) struct Stacks(Vec<(GroupBy, Stack)>);

#[derive(Default)]
struct Stack {
    grouped: SlicedTask<Option<Arc<Grouped>>>,
    /// One timeline for each tile that is drawn at the same time. A timeline caches its last state.
    timelines: SlicedTask<Vec<Timeline>>,
    /// The colors of the last search, and timelines that know its hits.
    searched: Option<(Weak<Colors>, SlicedTask<Vec<Timeline>>)>,
}

/// The groups of a device's blocks, and the order of the stack.
pub(super) struct Grouped {
    kind: GroupKind,
    groups: Groups,
    order: Arc<StackOrder>,
}

impl Stacks {
    /// The timelines of a grouping, at least one. Runs a slice of computing them; `None` until they
    /// are complete. Except for `Block`, the device's categories must exist.
    pub(super) fn timelines(&mut self, on: &Subject, by: GroupBy) -> Option<&mut Vec<Timeline>> {
        let order = self.order(on, by)?;
        let stack = self.stack(by);
        stack.timelines.advance(|| timelines(on.clone(), order, None)).then_some(())?;
        stack.timelines.done_mut()
    }

    /// As [`Stacks::timelines`], of a stack that draws the hits of a search in `colors`.
    pub(super) fn searched(
        &mut self,
        on: &Subject,
        by: GroupBy,
        colors: &Arc<Colors>,
    ) -> Option<&mut Vec<Timeline>> {
        let order = self.order(on, by)?;
        let stack = self.stack(by);
        let wanted = Arc::downgrade(colors);
        let is_known = |(known, _): &(Weak<Colors>, _)| known.ptr_eq(&wanted);
        if !stack.searched.as_ref().is_some_and(is_known) {
            stack.searched = Some((wanted, SlicedTask::default()));
        }
        let (_, made) = stack.searched.as_mut()?;
        let made_of = || timelines(on.clone(), order, Some(colors.clone()));
        made.advance(made_of).then_some(())?;
        made.done_mut()
    }

    /// The order of a grouping's stack, once it is computed: `None` inside for an ungrouped one.
    #[expect(clippy::option_option, reason = "not computed yet, and no order, are different")]
    fn order(&mut self, on: &Subject, by: GroupBy) -> Option<Option<Arc<StackOrder>>> {
        match kind(by) {
            Some(_) => Some(Some(self.grouped(on, by)?.order.clone())),
            None => Some(None),
        }
    }

    /// The groups of a grouping. Runs a slice of computing them; `None` until they are complete.
    fn grouped(&mut self, on: &Subject, by: GroupBy) -> Option<Arc<Grouped>> {
        let stack = self.stack(by);
        stack.grouped.advance(|| grouped(on.clone(), by)).then_some(())?;
        stack.grouped.done()?.clone()
    }

    fn stack(&mut self, by: GroupBy) -> &mut Stack {
        let known = self.0.iter().position(|(known, _)| *known == by);
        let at = known.unwrap_or_else(|| {
            self.0.push((by, Stack::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Queries {
    /// The groups of a device. Runs a slice of computing them; `None` until they are complete.
    pub(super) fn grouped(&mut self, on: &Subject, by: GroupBy) -> Option<Arc<Grouped>> {
        self.tiles.stacks(on.device).grouped(on, by)
    }

    /// As [`Queries::grouped`], and `None` inside for a stack that is not grouped.
    #[expect(clippy::option_option, reason = "not computed yet, and no groups, are different")]
    pub(super) fn grouped_or_none(
        &mut self,
        on: &Subject,
        by: GroupBy,
    ) -> Option<Option<Arc<Grouped>>> {
        if by == GroupBy::Block { Some(None) } else { self.grouped(on, by).map(Some) }
    }
}

impl Stacks {
    /// The name of a group, once the groups are computed.
    pub(super) fn name(&mut self, at: Target<'_>, by: GroupBy, group: u32) -> Option<String> {
        let grouped = self.stack(by).grouped.done()?.as_ref()?;
        grouped.groups.groups.get(group as usize)?.names(at).into_iter().next()
    }
}

fn kind(by: GroupBy) -> Option<GroupKind> {
    match by {
        GroupBy::Block => None,
        GroupBy::Category => Some(GroupKind::Category),
        GroupBy::Line => Some(GroupKind::Line),
        GroupBy::Module => Some(GroupKind::Module),
    }
}

async fn timelines(
    on: Subject,
    order: Option<Arc<StackOrder>>,
    searched: Option<Arc<Colors>>,
) -> Vec<Timeline> {
    let at = on.at();
    let budget = &mut Budget::of(SLICE);
    let mut timeline = match order {
        Some(order) => Timeline::grouped(at.trace(), order, budget).await,
        None => Timeline::new(at.trace(), budget).await,
    };
    if let Some(colors) = searched {
        timeline.keep_hits(at.trace(), &colors, budget).await;
    }
    vec![timeline]
}

async fn grouped(on: Subject, by: GroupBy) -> Option<Arc<Grouped>> {
    let (at, kind) = (on.at(), kind(by)?);
    let budget = &mut Budget::of(SLICE);
    let groups = Groups::new(at, kind, budget).await;
    let order = StackOrder::new(&groups.of_block, groups.groups.len(), budget).await;
    Some(Arc::new(Grouped { kind, groups, order: Arc::new(order) }))
}

/// The labels of the bands in a view. `letter` has the width of a letter and the height of a line
/// in pixels.
pub(super) async fn labels(
    at: Target<'_>,
    grouped: &Grouped,
    axis: crate::messages::AxisKind,
    view: View,
    letter: [f64; 2],
    search: &str,
    budget: &mut Budget,
) -> Vec<GroupLabel> {
    let Some(axis) = Axis::new(at.trace(), axis) else { return Vec::new() };
    let found = Matcher::new(at, search, budget).await;
    let is_hit = |block| found.as_ref().is_none_or(|found| found.block(at, block));
    let edges = GroupEdges::new(axis, &grouped.order, view, letter[1], &is_hit, budget).await;
    let mut labels: Vec<GroupLabel> = Vec::new();
    let mut taken: Vec<Place> = Vec::new();
    let mut without: Vec<&Band> = Vec::new();
    for band in edges.bands() {
        budget.charge(1 << 10).await;
        // The longest name that fits.
        let texts = texts(at, grouped, band);
        let found = texts
            .into_iter()
            .find_map(|text| Some((edges.place(band, width(&text, letter[0]))?, text)));
        match found {
            Some((place, text)) => {
                taken.push(place);
                labels.push(label(grouped, band, text, place, None));
            }
            None => without.push(band),
        }
    }
    // Narrow bands have labels beside the largest total, the largest band first.
    without.sort_by_key(|band| Reverse(band.most));
    for band in without {
        let Some(text) = texts(at, grouped, band).pop() else { continue };
        let width = width(&text, letter[0]);
        if let Some((place, side)) = edges.place_beside(band, width, &taken) {
            taken.push(place);
            let side = if side == layout::Side::Left { Side::Left } else { Side::Right };
            labels.push(label(grouped, band, text, place, Some(side)));
        }
    }
    labels.sort_by_key(|label| label.group);
    labels
}

/// The terms of a search for a block's group. None in a stack without groups.
pub(super) fn terms(at: Target<'_>, grouped: Option<&Grouped>, block: u32) -> Vec<String> {
    let group = |Grouped { groups, .. }: &Grouped| {
        let &group = groups.of_block.get(block as usize)?;
        Some(groups.groups[group as usize].terms(at))
    };
    grouped.and_then(group).unwrap_or_default()
}

/// Where a block lies in a view.
pub(super) async fn run(
    at: Target<'_>,
    grouped: Option<&Grouped>,
    block: u32,
    axis: crate::messages::AxisKind,
    view: View,
    slot: f64,
    budget: &mut Budget,
) -> Option<BlockRun> {
    let axis = Axis::new(at.trace(), axis)?;
    let order = grouped.map(|grouped| &*grouped.order);
    let [x0, x1, y0, y1] = block_run(axis, order, block, view, slot, budget).await?;
    Some(BlockRun { x: (x0, x1), y: (y0, y1) })
}

/// The texts of a band's label, from the longest to the shortest.
fn texts(at: Target<'_>, grouped: &Grouped, band: &Band) -> Vec<String> {
    let size = Quantity::bytes(Bytes(band.most)).text;
    let up_to = if band.least == band.most { "" } else { "up to " };
    let names = grouped.groups.groups[band.group as usize].names(at);
    names.iter().map(|name| format!("{name} · {up_to}{size}")).collect()
}

fn width(text: &str, letter: f64) -> f64 {
    (text.chars().count() as f64 + PADDING) * letter
}

fn label(
    grouped: &Grouped,
    band: &Band,
    text: String,
    [x0, x1, y0, y1]: Place,
    beside: Option<Side>,
) -> GroupLabel {
    let category = Color::category(grouped.groups.groups[band.group as usize].category as u8);
    let shaded = match grouped.kind {
        GroupKind::Category => category,
        GroupKind::Line | GroupKind::Module => category.shaded(band.group),
    };
    GroupLabel {
        group: band.group,
        text,
        bytes: Quantity::bytes(Bytes(band.most)),
        color: shaded.of_hits(band.most, band.drawn).word(),
        beside,
        x: (x0, x1),
        y: (y0, y1),
    }
}
