//! Handlers of queries: one file for each kind of answer.
//!
//! Answers come from the reports of the command line. [`Queries`] holds the caches. [`overview`]
//! and [`compare`] also have the coordinator's side, where ranks are compared.

mod block_detail;
mod blocks;
mod changes;
mod code;
mod compare;
mod counter_lines;
mod detail_card;
mod disambiguate;
mod events;
mod export;
mod findings;
mod flame;
mod fleet;
mod frame;
mod grouped;
mod groups;
mod holders;
mod hover;
mod legend;
mod levers;
mod list;
mod lru_cache;
mod map;
mod matrix;
mod minimap;
mod modules;
mod next;
mod overview;
mod peak_lens;
mod phases;
mod picture;
mod pinned;
mod range;
mod ranked_bitmap;
mod ranks;

mod segment;
mod segment_uses;
mod segments;
mod settings;
mod shares;
mod source;
mod stack_shares;
mod state_at;
mod steps;
mod subject;
mod summary;
mod summary_plot;
#[cfg(test)]
mod tests;
mod tiles;
mod tracks;
mod what_if;

pub(crate) use block_detail::{block, find_block};
pub(crate) use compare::Compared;
pub(crate) use fleet::Said;
pub(crate) use hover::tooltip;
pub(crate) use overview::Ranks;
pub(crate) use ranks::Rank;
pub(crate) use subject::Subject;
pub(crate) use tiles::{PartialTile, TileStep, Tiles, detail_of, needs};

use crate::messages::DeviceRef;
use crate::messages::views::{Answer, ColorBy, GroupBy, Query};
use crate::scheduler::SLICE;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use vramscope_layout::View;
use vramscope_report::{LoadedFile, Target, html, record};
use vramscope_trace::slicing::Budget;

/// The caches that queries share.
pub(crate) struct Queries {
    /// Work of one slice of an answer without a cache.
    slice: u64,
    pub(crate) tiles: Tiles,
    events: events::Cache,
    blocks: blocks::Cache,
    flames: flame::Graphs,
    code: code::Tables,
    modules: modules::Tables,
    maps: map::Maps,
    scenarios: what_if::Scenarios,
}

impl Default for Queries {
    fn default() -> Self {
        Self {
            slice: SLICE,
            tiles: Tiles::default(),
            events: events::Cache::default(),
            blocks: blocks::Cache::default(),
            flames: flame::Graphs::default(),
            code: code::Tables::default(),
            modules: modules::Tables::default(),
            maps: map::Maps::default(),
            scenarios: what_if::Scenarios::default(),
        }
    }
}

/// An answer, or the state of the work for it.
pub(crate) enum Step<T> {
    /// More slices are needed.
    Working,
    /// The answer.
    Done(T),
    /// The file has no such device.
    NoSuchDevice,
}

/// The answer of a query without a cache, while it is computed.
type Task = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The work for one query.
#[derive(Default)]
pub(crate) struct Answering(Option<Task>);

/// Work for a slice: an answer from a cache, a cache that is being filled, or a task to run.
enum Work {
    Cached(Answer),
    Filling,
    Task(Task),
}

/// A task over a device. It owns its subject and its arguments. An answer that needs one slice
/// charges nothing: its budget is called `_budget`.
macro_rules! task {
    ($of:expr, |$at:ident, $budget:ident| $answer:expr) => {{
        let (on, slice): (&Subject, u64) = $of;
        let on = on.clone();
        Work::Task(Box::pin(async move {
            let ($at, $budget) = (on.at(), &mut Budget::of(slice));
            $answer
        }))
    }};
}

impl From<Option<Answer>> for Work {
    /// The work after a poll of a cache.
    fn from(polled: Option<Answer>) -> Self {
        polled.map_or(Self::Filling, Self::Cached)
    }
}

impl Queries {
    /// Runs a slice of the answer to a query, whose derived data exists.
    pub(crate) fn answer(
        &mut self,
        file: &Arc<LoadedFile>,
        device: DeviceRef,
        query: &Query,
        answering: &mut Answering,
    ) -> Step<Answer> {
        let task = match &mut answering.0 {
            Some(task) => task,
            None => {
                let Some(on) = Subject::new(file, device) else { return Step::NoSuchDevice };
                match self.work(&on, query.clone()) {
                    Work::Cached(answer) => return Step::Done(answer),
                    Work::Filling => return Step::Working,
                    Work::Task(task) => answering.0.insert(task),
                }
            }
        };
        match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Step::Working,
            Poll::Ready(answer) => Step::Done(answer),
        }
    }

    fn work(&mut self, on: &Subject, query: Query) -> Work {
        let at = on.at();
        let slice = (on, self.slice);
        let page = |from: u32, count: u32| from..from.saturating_add(count);
        match query {
            Query::Events { filter, from, count, near } => {
                self.events.page(on, filter, page(from, count), near).map(Answer::Events).into()
            }
            Query::Blocks { table, from, count, near } => {
                self.blocks.page(on, table, page(from, count), near).map(Answer::Blocks).into()
            }
            Query::Map { map } => {
                let map = self.maps.poll(on, &map);
                map.map(|map| Answer::Map(Box::new(map.info.clone()))).into()
            }
            Query::Flame { flame } => {
                self.flames.poll(on, &flame).map(|graph| Answer::Flame(graph.info(at))).into()
            }
            Query::FlameBoxes { flame, x0, x1, least } => {
                let graph = self.flames.poll(on, &flame);
                graph.map(|graph| Answer::FlameBoxes(graph.boxes(at, x0, x1, least))).into()
            }
            Query::FlameNode { flame, node } => {
                let graph = self.flames.poll(on, &flame);
                graph.map(|graph| Answer::FlameNode(graph.node(at, node).map(Box::new))).into()
            }
            Query::Code { spec, from, count } => {
                self.code.page(on, &spec, page(from, count)).map(Answer::Code).into()
            }
            Query::Source { spec } => {
                task!(slice, |at, budget| Answer::Source(source::page(at, &spec, budget).await))
            }
            Query::Modules { spec, from, count } => {
                self.modules.page(on, &spec, page(from, count)).map(Answer::Modules).into()
            }
            Query::Holders { event } => task!(slice, |at, budget| {
                Answer::Holders(holders::holders(at, event, budget).await)
            }),
            Query::Sandwich { spec, frame } => task!(slice, |at, budget| Answer::Sandwich(
                code::sandwich(at, &spec, frame, budget).await.map(Box::new)
            )),
            Query::Segments { rows } => {
                let order = self.tiles.orders.poll(on, &rows);
                order.map(|order| Answer::Segments(order.info(at, &rows))).into()
            }
            Query::SegmentRows { rows, y0, y1 } => {
                let order = self.tiles.orders.poll(on, &rows);
                order.map(|order| Answer::SegmentRows(order.rows(at, &rows, y0, y1))).into()
            }
            Query::SegmentUses { rows, y0, y1, event } => {
                let order = self.tiles.orders.poll(on, &rows);
                let uses = |order| segment_uses::uses(at, order, &rows, [y0, y1], event);
                order.map(|order| Answer::SegmentUses(uses(order))).into()
            }
            Query::Scenario { text } => {
                let answered = self.scenarios.poll(on, &text);
                answered.map(|of| Answer::Scenario(Box::new(of.card.clone()))).into()
            }
            Query::SimulatedCurve { text, axis, x0, x1, columns } => {
                let answered = self.scenarios.poll(on, &text);
                let curve = |of: &what_if::AnsweredScenario| of.curve(at, axis, [x0, x1], columns);
                answered.map(|of| Answer::SimulatedCurve(curve(of))).into()
            }
            Query::Reserved {} => task!(slice, |at, budget| Answer::Reserved(
                what_if::reserved_use(at, budget).await.map(Box::new)
            )),
            Query::Card {} => {
                task!(slice, |at, budget| Answer::Card(Box::new(ranks::card(at, budget).await)))
            }
            Query::Summary {} => {
                task!(slice, |at, budget| Answer::Summary(Box::new(
                    summary::summary(at, false, budget).await
                )))
            }
            Query::SimulatedSummary {} => {
                task!(slice, |at, budget| Answer::Summary(Box::new(
                    summary::summary(at, true, budget).await
                )))
            }
            Query::SummaryPlot {} => {
                task!(slice, |at, budget| Answer::SummaryPlot(Box::new(
                    summary_plot::summary_plot(at, budget).await
                )))
            }
            Query::Levers { bytes, all } => {
                let available = bytes.map(|bytes| bytes as u64);
                task!(slice, |at, budget| Answer::Levers(Box::new(
                    levers::levers(at, available, all, budget).await
                )))
            }
            Query::LeverSettings {} => {
                task!(slice, |at, budget| Answer::LeverSettings(levers::settings(at, budget).await))
            }
            Query::Phases { axis, x0, x1, columns } => task!(slice, |at, budget| Answer::Phases(
                phases::phases(at, axis, [x0, x1], columns, budget).await
            )),
            Query::FoldedSteps { axis } => task!(slice, |at, budget| Answer::FoldedSteps(
                Box::new(steps::folded(at, axis, budget).await)
            )),
            Query::Minimap { axis } => {
                task!(slice, |at, budget| Answer::Minimap(minimap::minimap(at, axis, budget).await))
            }
            Query::Tracks { axis, x0, x1, columns } => task!(slice, |at, _budget| {
                Answer::Tracks(tracks::tracks(at, axis, x0, x1, columns))
            }),
            Query::Legend { color, .. } => {
                let sites = match color {
                    ColorBy::Stack => match self.tiles.sites(on) {
                        Some(sites) => sites,
                        None => return Work::Filling,
                    },
                    _ => Arc::default(),
                };
                task!(slice, |at, budget| Answer::Legend(
                    legend::legend(at, &query, &sites, budget).await
                ))
            }
            Query::ReservedLine { axis, x0, x1, columns } => {
                task!(slice, |at, budget| Answer::ReservedLine(Box::new(
                    counter_lines::reserved(at, axis, [x0, x1], columns, budget).await
                )))
            }
            Query::DeadLine { axis, x0, x1, columns } => {
                task!(slice, |at, budget| Answer::DeadLine(
                    counter_lines::dead(at, axis, [x0, x1], columns, budget).await.map(Box::new)
                ))
            }
            Query::FreeLines { axis, x0, x1, columns, event } => {
                task!(slice, |at, budget| Answer::FreeLines(
                    counter_lines::free(at, axis, [x0, x1], columns, event, budget).await
                ))
            }
            Query::Moments { axis, x0, x1, columns, event } => task!(slice, |at, _budget| {
                Answer::Moments(Box::new(pinned::moments(at, axis, [x0, x1], columns, event)))
            }),
            Query::PinnedLine { moments, top } => {
                task!(slice, |at, budget| Answer::PinnedLine(Box::new(
                    pinned::line(at, &moments, top, budget).await
                )))
            }
            Query::Limit { axis } => {
                task!(slice, |at, budget| Answer::Limit(Box::new(
                    legend::limit(at, axis, budget).await
                )))
            }
            Query::StateAt { event } => task!(slice, |at, budget| Answer::StateAt(Box::new(
                state_at::state_at(at, event, budget).await
            ))),
            Query::EventAt { axis, slot } => {
                task!(slice, |at, _budget| Answer::EventAt(state_at::event_at(
                    at.trace(),
                    axis,
                    slot
                )))
            }
            Query::Peak {} => task!(slice, |at, budget| {
                let event = at.trace().requested_band.peak_event.map_or(-1, i64::from);
                Answer::StateAt(Box::new(state_at::state_at(at, event, budget).await))
            }),
            Query::PeakLens { peak, width, height } => task!(slice, |at, budget| Answer::PeakLens(
                Box::new(peak_lens::lens(at, peak, [width, height], budget).await)
            )),
            Query::Markers { events } => {
                task!(slice, |at, _budget| Answer::Markers(state_at::markers(at.trace(), &events)))
            }
            Query::Range(marked) => task!(slice, |at, budget| Answer::Detail(
                range::range(at, &marked, budget).await.map(Box::new)
            )),
            Query::Changes { from, to } => task!(slice, |at, budget| Answer::Changes(Box::new(
                changes::changes(at, [from, to], budget).await
            ))),
            Query::Export { what, form } => {
                task!(slice, |at, budget| Answer::Text(
                    export::export(at, &what, form, budget).await
                ))
            }
            Query::Record { id } => {
                task!(slice, |at, budget| Answer::Record(record::by_id(at, &id, budget).await))
            }
            Query::Convert { format } => {
                task!(slice, |at, budget| Answer::Text(export::convert(at, format, budget).await))
            }
            Query::Markdown {} => {
                task!(slice, |at, budget| Answer::Text(summary::markdown(at, budget).await))
            }
            Query::Report { name } => {
                task!(slice, |at, budget| Answer::Text(html::device(at, &name, budget).await))
            }
            Query::Next { of, event, block, backwards } => {
                task!(slice, |at, budget| Answer::Next(
                    next::next(at, &of, event, block, backwards, budget).await.map(Box::new)
                ))
            }
            Query::Hit { block } => {
                task!(slice, |at, _budget| Answer::Hit(
                    hover::block_tooltip(at, block).map(Box::new)
                ))
            }
            Query::GroupLabels { group, axis, x, y, size, letter, search } => {
                let Some(grouped) = self.grouped(on, group) else {
                    return if group == GroupBy::Block {
                        Work::Cached(Answer::GroupLabels(Vec::new()))
                    } else {
                        Work::Filling
                    };
                };
                let view = View { x, y, size };
                task!(slice, |at, budget| Answer::GroupLabels(
                    grouped::labels(at, &grouped, axis, view, letter, &search, budget).await
                ))
            }
            Query::GroupTerms { block, group } => {
                let Some(grouped) = self.grouped_or_none(on, group) else { return Work::Filling };
                task!(slice, |at, _budget| Answer::GroupTerms(grouped::terms(
                    at,
                    grouped.as_deref(),
                    block
                )))
            }
            Query::StepRange { moments, axis } => task!(slice, |at, _budget| {
                Answer::StepRange(pinned::step_range(at, &moments, axis))
            }),
            Query::BlockRun { block, group, axis, x, width, slot } => {
                let Some(grouped) = self.grouped_or_none(on, group) else { return Work::Filling };
                let view = View { x, y: [0.0, 1.0], size: [width, 1.0] };
                task!(slice, |at, budget| Answer::BlockRun(
                    grouped::run(at, grouped.as_deref(), block, axis, view, slot, budget).await
                ))
            }
            Query::Names { blocks } => task!(slice, |at, _budget| Answer::Names(
                blocks.iter().map(|&block| hover::block_labels(at, block)).collect()
            )),
            Query::Search { text } => {
                task!(slice, |at, budget| Answer::Search(
                    groups::search(at, &text, budget).await.map(Box::new)
                ))
            }
            Query::Group { text, event } => task!(slice, |at, budget| Answer::Group(
                groups::group(at, &text, event, budget).await.map(Box::new)
            )),
            Query::Segment { segment, event } => task!(slice, |at, budget| {
                Answer::Detail(segment::segment(at, segment, event, budget).await.map(Box::new))
            }),
            Query::SegmentOf { block } => {
                task!(slice, |at, _budget| Answer::SegmentOf(segment::segment_of(at, block)))
            }
            Query::Frame { name, file: path, line } => task!(slice, |at, budget| {
                Answer::Detail(frame::frame(at, &name, &path, line, budget).await.map(Box::new))
            }),
            Query::Side { band } => {
                task!(slice, |at, budget| Answer::Text(compare::side(at, band, budget).await))
            }
            Query::Settings {} => {
                task!(slice, |at, budget| Answer::Settings(settings::settings(at, budget).await))
            }
            Query::Picture { .. } => {
                let shared = on.clone();
                task!(slice, |_at, budget| {
                    Answer::Text(picture::picture(&shared, &query, budget).await)
                })
            }
        }
    }
}

/// The device that a message names.
pub(crate) fn target(file: &LoadedFile, device: DeviceRef) -> Option<Target<'_>> {
    file.target(device.part, device.device)
}
