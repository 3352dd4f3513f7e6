//! What the views ask beyond the first picture, answered from the same analyses that the program prints.
//!
//! [`Views`] keeps, for each device, what answers are made of and what is worth keeping between two of them. A file a kind
//! of answer; [`overview`] is the coordinator's side, where ranks are compared.

mod blocks;
mod card;
mod compare;
mod course;
mod detail;
mod events;
mod export;
mod findings;
mod flame;
mod moment;
mod next;
mod overview;
mod picture;
mod range;
mod search;
mod segments;
mod settings;
mod tiles;
mod tracks;

pub(crate) use compare::Compared;
pub(crate) use overview::Ranks;

use crate::engine::Half;
use crate::file::File;
use crate::making::{Making, Needs};
use crate::protocol::views::{Answer, Query};
use crate::protocol::{AxisKind, DeviceRef};
use crate::report::Target;
use std::sync::Arc;

impl Query {
    /// Whether the answer may take longer than a slice: it is given when nothing else waits.
    pub(crate) fn is_long(&self) -> bool {
        matches!(
            self,
            Self::Card {}
                | Self::Side { .. }
                | Self::Findings {}
                | Self::Course { .. }
                | Self::Export { .. }
                | Self::Picture { .. }
        )
    }

    /// Whether a newer question of this kind makes an older one pointless, whose answer then never comes.
    pub(crate) fn replaces(&self) -> bool {
        matches!(
            self,
            Self::Tracks { .. }
                | Self::Moment { .. }
                | Self::Range { .. }
                | Self::Events { .. }
                | Self::Blocks { .. }
                | Self::FlameBoxes { .. }
                | Self::FlameNode { .. }
                | Self::Hit { .. }
                | Self::Names { .. }
                | Self::Search { .. }
        )
    }
}

impl Query {
    /// What the answer is made of.
    pub(crate) fn needs(&self) -> Needs {
        let all = Needs { carving: true, categories: true, pools: true };
        match self {
            Self::Moment { .. } => all,
            Self::Card {} | Self::Side { .. } | Self::Blocks { .. } | Self::Export { .. } => {
                Needs { pools: false, ..all }
            }
            Self::Course { .. } | Self::Picture { .. } => Needs { categories: false, ..all },
            Self::Findings {}
            | Self::Segments { .. }
            | Self::Segment { .. }
            | Self::SegmentOf { .. }
            | Self::Flame { .. }
            | Self::FlameBoxes { .. }
            | Self::FlameNode { .. }
            | Self::Settings {} => Needs { carving: true, ..Needs::default() },
            Self::Frame { .. } => Needs { categories: true, ..Needs::default() },
            Self::Tracks { .. }
            | Self::Range { .. }
            | Self::Events { .. }
            | Self::Next { .. }
            | Self::Hit { .. }
            | Self::Names { .. }
            | Self::Search { .. } => Needs::default(),
        }
    }
}

/// What is kept between answers.
#[derive(Default)]
pub(crate) struct Views {
    tiles: tiles::Tiles,
    events: events::Kept,
    blocks: blocks::Kept,
    flames: flame::Kept,
}

impl Views {
    /// The answer to a question; `None` when there is no such device.
    pub(crate) fn answer(&mut self, file: &Arc<File>, target: DeviceRef, query: &Query) -> Option<Answer> {
        let at = find(file, target)?;
        Some(match query {
            Query::Card {} => Answer::Card(Box::new(card::card(at))),
            Query::Findings {} => Answer::Findings(findings::findings(at)),
            Query::Course { axis } => Answer::Course(course::course(at, *axis)),
            &Query::Tracks { axis, x0, x1, columns } => Answer::Tracks(tracks::tracks(at, axis, x0, x1, columns)),
            &Query::Moment { at: moment } => Answer::Moment(Box::new(moment::moment(at, moment))),
            &Query::Range { axis, x0, x1 } => Answer::Detail(range::range(at, axis, x0, x1).map(Box::new)),
            Query::Events { filter, from, count, near } => {
                Answer::Events(self.events.page(at, target, filter, *from..from.saturating_add(*count), *near))
            }
            Query::Blocks { table, from, count, near } => {
                let rows = *from..from.saturating_add(*count);
                Answer::Blocks(self.blocks.page(at, target, table, rows, *near, &mut self.flames))
            }
            Query::Export { what, form } => Answer::Text(export::export(at, target, what, *form, &mut self.flames)),
            Query::Next { of, event, block, backwards } => {
                Answer::Next(next::next(at, of, *event, *block, *backwards).map(Box::new))
            }
            &Query::Hit { block } => Answer::Hit(detail::hit(at, block).map(Box::new)),
            Query::Names { blocks } => Answer::Names(blocks.iter().map(|&block| detail::name(at, block)).collect()),
            Query::Search { text } => Answer::Search(search::search(at, text)),
            Query::Segments { rows } => Answer::Segments(segments::rows(at, rows)),
            &Query::Segment { segment, event } => Answer::Detail(segments::segment(at, segment, event).map(Box::new)),
            &Query::SegmentOf { block } => Answer::SegmentOf(segments::segment_of(at, block)),
            Query::Flame { flame } => Answer::Flame(self.flames.get(at, target, flame).info(at)),
            Query::FlameBoxes { flame, x0, x1, least } => {
                Answer::FlameBoxes(self.flames.get(at, target, flame).boxes(at, *x0, *x1, *least))
            }
            Query::FlameNode { flame, node } => {
                Answer::FlameNode(self.flames.get(at, target, flame).node(at, *node).map(Box::new))
            }
            Query::Frame { name, file, line } => Answer::Detail(detail::frame(at, name, file, *line).map(Box::new)),
            Query::Picture { .. } => Answer::Text(picture::picture(self, file, target, query)),
            &Query::Side { band } => Answer::Text(compare::side(at, band)),
            Query::Settings {} => Answer::Settings(settings::settings(at)),
        })
    }

    /// A slice of tiles: `None` when the layer is the plain timeline, which the engine draws by itself; `Some(None)` when
    /// there is no such device or axis.
    #[expect(clippy::option_option, reason = "no tile of these views, and no such tile")]
    pub(crate) fn tile(
        &mut self,
        file: &Arc<File>,
        making: &mut Making,
        target: DeviceRef,
        axis: AxisKind,
        layer: &crate::protocol::views::Layer,
        halves: &mut [Half],
    ) -> Option<Option<()>> {
        tiles::tile(self, file, making, target, axis, layer, halves)
    }
}

/// A device as the reports know it.
fn find(file: &File, target: DeviceRef) -> Option<Target<'_>> {
    let part = file.parts.get(target.part as usize)?;
    let index = part.traces.iter().position(|t| t.device.device == target.device)?;
    Some(Target { path: &part.path, part, index })
}
