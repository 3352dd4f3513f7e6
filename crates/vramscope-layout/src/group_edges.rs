//! The edges of a grouped stack's bands in a view, and places for labels in them.

use crate::axis::Axis;
use crate::stack_order::StackOrder;
use crate::tile::shown_state;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, strides};

/// A view of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The left and right edge in slots.
    pub x: [f64; 2],
    /// The lower and upper edge in bytes.
    pub y: [f64; 2],
    /// Width and height in pixels.
    pub size: [f64; 2],
}

/// Bands with labels in a view. The highest ones are taken.
const MAX_BANDS: usize = 200;

/// The width of a bin in pixels. Labels are placed in whole bins.
const BIN_PIXELS: f64 = 8.0;

/// A band of at least this many lines of text has no advantage over lower ones.
const HIGH_LINES: f64 = 2.0;

/// Pixels between the largest total and a label beside it.
const GAP_PIXELS: f64 = 6.0;

/// Cost of reading a block for the first column, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 2;

/// The bands of a view that are high enough for text somewhere.
#[derive(Debug)]
pub struct GroupEdges {
    bands: Vec<Band>,
    /// Left edge of the first bin, and width of a bin, in slots.
    from: f64,
    width: f64,
    /// Width of a bin in pixels.
    pixels: f64,
    /// Height of a line of text in bytes.
    line: f64,
    /// The bin with the largest total in view, and the slot in its middle.
    top: usize,
    top_slot: f64,
    /// The view's edges in slots, and slots per pixel.
    x: [f64; 2],
    per_pixel: f64,
}

/// A band in a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// The group.
    pub group: u32,
    /// Its most bytes in view: of hits only, with a search.
    pub most: u64,
    /// Its least bytes in view, counted as `most`.
    pub least: u64,
    /// Its most bytes in view, with or without a search.
    pub drawn: u64,
    /// Its lower and upper edge in bytes where the total in view is largest.
    at_top: [f64; 2],
    /// Heights that belong to the band in all columns of a bin: lower and upper edge in bytes. The
    /// upper edge is below the lower one where there is no such height.
    bins: Vec<[f64; 2]>,
}

/// The side of the largest total in view on which a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before it.
    Left,
    /// Behind it.
    Right,
}

/// A place for a label: `[x0, x1, y0, y1]` in slots and bytes.
pub type Place = [f64; 4];

impl GroupEdges {
    /// Finds the bands of `view` in which a line of text of `line` pixels fits. A column shows
    /// the same state as in the tiles of the view. A band needs a block for which `is_hit` is true.
    pub async fn new(
        axis: Axis<'_>,
        order: &StackOrder,
        view: View,
        line: f64,
        is_hit: &(dyn Fn(u32) -> bool + Sync),
        budget: &mut Budget,
    ) -> Self {
        let trace = axis.trace();
        let slots_per_pixel = slots_per_pixel(view);
        let (kx, first) = columns(axis, view);
        let column = (1u64 << kx) as f64;
        let states = states(axis, kx, first, view, budget).await;
        let per_bin = ((BIN_PIXELS * slots_per_pixel / column).ceil() as usize).max(1);
        let mut edges = Self {
            bands: Vec::new(),
            from: first as f64 * column,
            width: column * per_bin as f64,
            pixels: column * per_bin as f64 / slots_per_pixel.max(f64::MIN_POSITIVE),
            line: line * (view.y[1] - view.y[0]) / view.size[1].max(1.0),
            top: 0,
            top_slot: 0.0,
            x: view.x,
            per_pixel: slots_per_pixel,
        };
        let Some(&begin) = states.first() else { return edges };
        let total = |column: usize| trace.requested.at(states[column]);
        // The first of equally high columns, as the peak is the first of equally high states.
        let top = (0..states.len()).rev().max_by_key(|&column| total(column)).unwrap_or(0);
        edges.top = top / per_bin;
        edges.top_slot = (first as f64 + top as f64 + 0.5) * column;
        let [start, hits] = totals(trace, order, begin, is_hit, budget).await;
        let mut all = Sums::new(start.clone());
        let mut hits = Sums::new(hits);
        for pair in states.windows(2) {
            let changes = trace.changes_in(pair[0] + 1..pair[1] + 1);
            budget.charge(3 * changes.len() as u64).await;
            for change in changes {
                let block = change.block();
                let group = order.group_of(block) as usize;
                let bytes = trace.blocks[block as usize].bytes.0;
                all.change(group, change.enters(), bytes);
                if is_hit(block) {
                    hits.change(group, change.enters(), bytes);
                }
            }
        }
        let most = &all.most;
        let is_high = |group: usize| most[group] as f64 >= edges.line && edges.line > 0.0;
        let mut high: Vec<u32> = (0..most.len() as u32)
            .filter(|&group| is_high(group as usize) && hits.most[group as usize] > 0)
            .collect();
        high.sort_by_key(|&group| std::cmp::Reverse(most[group as usize]));
        high.truncate(MAX_BANDS);
        high.sort_unstable();
        edges.bands.extend(high.iter().map(|&group| Band {
            group,
            most: hits.most[group as usize],
            least: hits.least[group as usize],
            drawn: most[group as usize],
            at_top: [0.0; 2],
            bins: vec![view.y; states.len().div_ceil(per_bin)],
        }));
        // The groups between two bands count as one.
        let mut part_of = Vec::with_capacity(most.len());
        for group in 0..most.len() as u32 {
            let below = high.partition_point(|&band| band < group);
            part_of.push(2 * below + usize::from(high.get(below) == Some(&group)));
        }
        let mut parts = vec![0u64; 2 * high.len() + 1];
        for (group, bytes) in start.iter().enumerate() {
            parts[part_of[group]] += bytes;
        }
        let mut before = begin;
        for (index, &state) in states.iter().enumerate() {
            let changes = trace.changes_in(before + 1..state + 1).len() as u64;
            budget.charge(changes + high.len() as u64).await;
            apply(trace, order, &[before, state], &mut parts, |group| part_of[group]);
            before = state;
            let mut low = 0;
            for (band, part) in edges.bands.iter_mut().zip(parts.chunks(2)) {
                let [from, to] = [low + part[0], low + part[0] + part[1]];
                let bin = &mut band.bins[index / per_bin];
                *bin = [bin[0].max(from as f64), bin[1].min(to as f64)];
                if index == top {
                    band.at_top = [from as f64, to as f64];
                }
                low = to;
            }
        }
        edges
    }

    /// The bands, from the bottom up.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// A place of `width` pixels beside the largest total in view, at the height of a band that is
    /// at least one line high there. It covers other bands, but no place of `taken`. The right side
    /// is tried first.
    pub fn place_beside(&self, band: &Band, width: f64, taken: &[Place]) -> Option<(Place, Side)> {
        let [low, high] = band.at_top;
        if high - low < self.line {
            return None;
        }
        let (middle, half) = (f64::midpoint(low, high), self.line / 2.0);
        let sides = [(1.0, Side::Right), (-1.0, Side::Left)].map(|(sign, side)| {
            let near = self.top_slot + sign * GAP_PIXELS * self.per_pixel;
            let far = near + sign * width * self.per_pixel;
            ([near.min(far), near.max(far), middle - half, middle + half], side)
        });
        sides.into_iter().find(|(place, _)| {
            let is_clear = |other: &Place| {
                place[1] <= other[0]
                    || other[1] <= place[0]
                    || place[3] <= other[2]
                    || other[3] <= place[2]
            };
            self.x[0] <= place[0] && place[1] <= self.x[1] && taken.iter().all(is_clear)
        })
    }

    /// A place of `width` pixels in a band, one line high. Of places with room, the nearest to the
    /// largest total in view. `None` if the band is too low or too narrow.
    pub fn place(&self, band: &Band, width: f64) -> Option<Place> {
        let bins = (width / self.pixels).ceil().max(1.0) as usize;
        let rooms = band.bins.windows(bins).map(|window| {
            window.iter().fold([f64::NEG_INFINITY, f64::INFINITY], |[low, high], bin| {
                [low.max(bin[0]), high.min(bin[1])]
            })
        });
        let mut best: Option<(f64, usize, usize, f64)> = None;
        for (at, [low, high]) in rooms.enumerate() {
            let height = (high - low).min(HIGH_LINES * self.line);
            let distance = (at + bins / 2).abs_diff(self.top);
            if height >= self.line
                && best.is_none_or(|(best_height, nearest, ..)| {
                    height > best_height || (height == best_height && distance < nearest)
                })
            {
                best = Some((height, distance, at, f64::midpoint(low, high)));
            }
        }
        best.map(|(_, _, at, middle)| {
            let x0 = self.from + at as f64 * self.width;
            let half = self.line / 2.0;
            [x0, x0 + bins as f64 * self.width, middle - half, middle + half]
        })
    }
}

fn slots_per_pixel(view: View) -> f64 {
    ((view.x[1] - view.x[0]) / view.size[0].max(1.0)).max(0.0)
}

/// Log2 of the slots per column of a view, and the first column in it.
pub(crate) fn columns(axis: Axis<'_>, view: View) -> (u8, u64) {
    let kx = slots_per_pixel(view).max(1.0).log2().ceil().min(44.0) as u8;
    (kx, (view.x[0].clamp(0.0, axis.extent() as f64) / (1u64 << kx) as f64) as u64)
}

/// The states of the columns in a view.
pub(crate) async fn states(
    axis: Axis<'_>,
    kx: u8,
    first: u64,
    view: View,
    budget: &mut Budget,
) -> Vec<u32> {
    let mut states = Vec::new();
    let end = view.x[1].min(axis.extent() as f64) as u64;
    let columns = (view.size[0].clamp(0.0, f64::from(u16::MAX)) as u64).saturating_add(2);
    for column in first..first.saturating_add(columns) {
        let from = column << kx;
        if from >= end.max(1) {
            break;
        }
        budget.charge(1 + axis.states_in(from..from + (1 << kx)).len() as u64 / 16).await;
        states.extend(shown_state(axis, from, kx));
    }
    states
}

/// The bytes of each group along the columns of a view.
struct Sums {
    /// In the current state.
    now: Vec<u64>,
    /// The most so far.
    most: Vec<u64>,
    /// The least so far.
    least: Vec<u64>,
}

impl Sums {
    fn new(start: Vec<u64>) -> Self {
        Self { most: start.clone(), least: start.clone(), now: start }
    }

    fn change(&mut self, group: usize, enters: bool, bytes: u64) {
        let sum = &mut self.now[group];
        *sum = if enters { *sum + bytes } else { *sum - bytes };
        self.most[group] = self.most[group].max(*sum);
        self.least[group] = self.least[group].min(*sum);
    }
}

/// The live bytes of each group in one state: all of them, and those of hits.
async fn totals(
    trace: &Trace,
    order: &StackOrder,
    state: u32,
    is_hit: &(dyn Fn(u32) -> bool + Sync),
    budget: &mut Budget,
) -> [Vec<u64>; 2] {
    let mut sums = [vec![0; order.groups()], vec![0; order.groups()]];
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64 * COST_PER_BLOCK).await;
        for (index, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            if block.is_live_at(state) {
                let group = order.group_of(index) as usize;
                sums[0][group] += block.bytes.0;
                sums[1][group] += if is_hit(index) { block.bytes.0 } else { 0 };
            }
        }
    }
    sums
}

/// Moves sums of all blocks from one state to a later one.
fn apply(
    trace: &Trace,
    order: &StackOrder,
    states: &[u32],
    sums: &mut [u64],
    part_of: impl Fn(usize) -> usize,
) {
    for change in trace.changes_in(states[0] + 1..states[1] + 1) {
        let bytes = trace.blocks[change.block() as usize].bytes.0;
        let sum = &mut sums[part_of(order.group_of(change.block()) as usize)];
        *sum = if change.enters() { *sum + bytes } else { *sum - bytes };
    }
}
