//! What the views ask beyond the first picture, answered from the same analyses that the program
//! prints.
//!
//! [`Views`] keeps, for each device, what answers are made of and what is worth keeping between two
//! of them. A file a kind of answer; [`overview`] is the coordinator's side, where ranks are
//! compared.

mod apart;
mod blocks;
mod card;
mod compare;
mod course;
mod detail;
mod events;
mod export;
mod findings;
mod flame;
mod kept;
mod moment;
mod next;
mod overview;
mod picked;
mod picture;
mod range;
mod search;
mod segment;
mod segments;
mod settings;
#[cfg(test)]
mod tests;
mod tiles;
mod tracks;

pub(crate) use compare::Compared;
pub(crate) use overview::Ranks;

use crate::engine::Half;
use crate::file::File;
use crate::making::{Making, Needs};
use crate::protocol::views::{Answer, At, Query};
use crate::protocol::{AxisKind, DeviceRef};
use crate::report::Target;
use std::sync::Arc;
use vramscope_analysis::slicing::Budget;

impl Query {
    /// Whether the answer is known to take long: it is begun when nothing else waits.
    pub(crate) fn is_long(&self) -> bool {
        matches!(
            self,
            Self::Card {}
                | Self::Side { .. }
                | Self::Findings {}
                | Self::Peak {}
                | Self::Course { .. }
                | Self::Export { .. }
                | Self::Picture { .. }
        )
    }
}

macro_rules! replaced {
    ($($kind:ident),* $(,)?) => {
        impl Query {
            /// Whether a newer question of this kind makes an older one pointless, whose answer
            /// then never comes.
            pub(crate) fn replaces(&self) -> bool {
                matches!(self, $(Self::$kind { .. })|*)
            }

            /// These kinds, for the page: nobody there may wait for such an answer.
            #[cfg(test)]
            pub(crate) const REPLACED: &[&str] = &[$(stringify!($kind)),*];
        }
    };
}

replaced!(
    Tracks,
    Moment,
    Markers,
    Range,
    Events,
    Blocks,
    FlameBoxes,
    FlameNode,
    Hit,
    Names,
    Search,
    Segments,
    SegmentRows
);

impl Query {
    /// What the answer is made of.
    pub(crate) fn needs(&self) -> Needs {
        let all = Needs { carving: true, categories: true, pools: true, anomalies: true };
        match self {
            Self::Moment { .. } | Self::Peak {} => Needs { anomalies: false, ..all },
            Self::Card {} | Self::Side { .. } => Needs { pools: false, ..all },
            Self::Blocks { .. } | Self::Export { .. } => {
                Needs { pools: false, anomalies: false, ..all }
            }
            Self::Course { .. } => Needs { categories: false, ..all },
            Self::Picture { .. } => Needs { categories: false, anomalies: false, ..all },
            Self::Findings {} => Needs { carving: true, anomalies: true, ..Needs::default() },
            Self::Segments { .. }
            | Self::SegmentRows { .. }
            | Self::Segment { .. }
            | Self::SegmentOf { .. }
            | Self::Flame { .. }
            | Self::FlameBoxes { .. }
            | Self::FlameNode { .. }
            | Self::Settings {} => Needs { carving: true, ..Needs::default() },
            Self::Frame { .. } => Needs { categories: true, ..Needs::default() },
            Self::Tracks { .. }
            | Self::Markers { .. }
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
    flames: flame::Graphs,
}

impl Views {
    /// Whether all is there of what is kept between answers and that this one is made of; if not,
    /// makes a slice of it.
    pub(crate) fn is_ready(&mut self, file: &Arc<File>, target: DeviceRef, query: &Query) -> bool {
        match query {
            Query::Events { filter, .. } => self.events.is_ready(file, target, filter),
            Query::Blocks { table, .. } => self.blocks.is_ready(file, target, table),
            Query::Flame { flame }
            | Query::FlameBoxes { flame, .. }
            | Query::FlameNode { flame, .. } => self.flames.is_ready(file, target, flame),
            Query::Segments { rows } | Query::SegmentRows { rows, .. } => {
                self.tiles.orders.is_ready(file, target, rows)
            }
            _ => true,
        }
    }

    /// The answer to a question, from what is kept; `None` when it is not made of that,
    /// `Some(None)` when there is no such device.
    #[expect(clippy::option_option, reason = "no answer from what is kept, and no such device")]
    pub(crate) fn kept(
        &mut self,
        file: &File,
        target: DeviceRef,
        query: &Query,
    ) -> Option<Option<Answer>> {
        let Some(at) = find(file, target) else { return Some(None) };
        Some(Some(match query {
            Query::Events { filter, from, count, near } => Answer::Events(self.events.page(
                at,
                target,
                filter,
                *from..from.saturating_add(*count),
                *near,
            )),
            Query::Blocks { table, from, count, near } => Answer::Blocks(self.blocks.page(
                at,
                target,
                table,
                *from..from.saturating_add(*count),
                *near,
            )),
            Query::Flame { flame } => Answer::Flame(self.flames.get(at, target, flame).info(at)),
            Query::FlameBoxes { flame, x0, x1, least } => {
                Answer::FlameBoxes(self.flames.get(at, target, flame).boxes(at, *x0, *x1, *least))
            }
            Query::FlameNode { flame, node } => {
                Answer::FlameNode(self.flames.get(at, target, flame).node(at, *node).map(Box::new))
            }
            Query::Segments { rows } => {
                Answer::Segments(self.tiles.orders.get(at, target, rows).info(rows))
            }
            Query::SegmentRows { rows, y0, y1 } => Answer::SegmentRows(
                self.tiles.orders.get(at, target, rows).rows(at, rows, *y0, *y1),
            ),
            _ => return None,
        }))
    }

    /// A slice of tiles: `None` when the layer is the plain timeline, which the engine draws by
    /// itself; `Some(None)` when there is no such device or axis.
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

/// The answer to a question of which nothing is kept, in slices; `None` when there is no such
/// device, or when it is not such a question.
pub(crate) async fn answer(
    file: Arc<File>,
    target: DeviceRef,
    query: Query,
    mut budget: Budget,
) -> Option<Answer> {
    let at = find(&file, target)?;
    let budget = &mut budget;
    Some(match &query {
        Query::Card {} => Answer::Card(Box::new(card::card(at, budget).await)),
        Query::Findings {} => Answer::Findings(findings::findings(at, budget).await),
        Query::Course { axis } => Answer::Course(course::course(at, *axis, budget).await),
        &Query::Tracks { axis, x0, x1, columns } => {
            Answer::Tracks(tracks::tracks(at, axis, x0, x1, columns))
        }
        &Query::Moment { at: moment } => {
            Answer::Moment(Box::new(moment::moment(at, moment, budget).await))
        }
        Query::Peak {} => {
            let event = at.trace().requested_band.peak_event.map_or(-1, i64::from);
            Answer::Moment(Box::new(moment::moment(at, At::Event { event }, budget).await))
        }
        Query::Markers { events } => Answer::Markers(moment::markers(at.trace(), events)),
        Query::Range(marked) => {
            Answer::Detail(range::range(at, marked, budget).await.map(Box::new))
        }
        Query::Export { what, form } => Answer::Text(export::export(at, what, *form, budget).await),
        Query::Next { of, event, block, backwards } => {
            Answer::Next(next::next(at, of, *event, *block, *backwards, budget).await.map(Box::new))
        }
        &Query::Hit { block } => Answer::Hit(detail::hit(at, block).map(Box::new)),
        Query::Names { blocks } => {
            Answer::Names(blocks.iter().map(|&block| detail::names(at, block)).collect())
        }
        Query::Search { text } => Answer::Search(search::search(at, text, budget).await),
        &Query::Segment { segment, event } => {
            Answer::Detail(segment::segment(at, segment, event, budget).await.map(Box::new))
        }
        &Query::SegmentOf { block } => Answer::SegmentOf(segment::segment_of(at, block)),
        Query::Frame { name, file, line } => {
            Answer::Detail(detail::frame(at, name, file, *line, budget).await.map(Box::new))
        }
        Query::Picture { .. } => {
            Answer::Text(picture::picture(&file, target, &query, budget).await)
        }
        &Query::Side { band } => Answer::Text(compare::side(at, band, budget).await),
        Query::Settings {} => Answer::Settings(settings::settings(at, budget).await),
        Query::Events { .. }
        | Query::Blocks { .. }
        | Query::Flame { .. }
        | Query::FlameBoxes { .. }
        | Query::FlameNode { .. }
        | Query::Segments { .. }
        | Query::SegmentRows { .. } => return None,
    })
}

/// A device as the reports know it.
fn find(file: &File, target: DeviceRef) -> Option<Target<'_>> {
    let part = file.parts.get(target.part as usize)?;
    let index = part.traces.iter().position(|t| t.device.device == target.device)?;
    Some(Target { path: &part.path, part, index })
}
