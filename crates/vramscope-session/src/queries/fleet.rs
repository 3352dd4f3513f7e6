//! The ranks of a run in one picture: the distribution of peaks, clusters, iterations.

use super::matrix::ShownMatrix;
use super::overview::Ranks;
use crate::messages::views::{Fleet, FleetBar, FleetCluster, FleetIteration, FleetTick, SERIES};
use vramscope_inference::median;
use vramscope_report::Quantity;
use vramscope_report::matrix::{named, numbers};
use vramscope_units::svg::Path;
use vramscope_units::{Bytes, Iteration, byte_ticks, grouped};

/// Fewer ranks have no distribution.
const MIN_RANKS: usize = 16;

/// The most bars.
const MAX_BARS: u64 = 96;

/// The most clusters that have a color of their own. The others share one.
const MAX_COLORS: usize = 6;

/// What the user says about a run.
pub(crate) struct Said<'a> {
    /// The sizes of the parallel groups; empty if they are not known.
    pub(crate) sizes: &'a str,
    /// What PyTorch can have.
    pub(crate) capacity: Option<u64>,
}

/// The sizes of the groups of data, tensor and pipeline parallel ranks.
#[derive(Clone, Copy)]
struct Sizes {
    data: u32,
    tensor: u32,
    pipeline: u32,
}

impl Ranks {
    /// The picture of the run with a row, or of the largest run. `None` with few ranks.
    pub(crate) fn fleet(&mut self, key: Option<u32>, said: &Said<'_>) -> Option<Fleet> {
        let iterations = self.iterations();
        self.show_matrix(key);
        let shown = self.matrix.as_ref();
        let ranks = shown.map_or(0, |shown| shown.matrix.columns.len());
        if ranks < MIN_RANKS && iterations.is_empty() {
            return None;
        }
        let mut fleet = Fleet::default();
        if let Some(shown) = shown.filter(|_| ranks >= MIN_RANKS) {
            add_clusters(&mut fleet, shown, said.sizes);
            self.add_bars(&mut fleet, shown, said.capacity);
        }
        self.add_iterations(&mut fleet, &iterations);
        Some(fleet)
    }

    fn add_bars(&self, fleet: &mut Fleet, shown: &ShownMatrix, said: Option<u64>) {
        let columns = &shown.matrix.columns;
        let peaks = || columns.iter().map(|column| column.peak);
        let (lo, hi) = (peaks().min().unwrap_or(0), peaks().max().unwrap_or(0));
        let width = ((hi - lo) / MAX_BARS + 1).next_power_of_two();
        let (first, last) = (lo / width, hi / width);
        let parts = shown.matrix.clusters.len().min(MAX_COLORS + 1);
        let mut counts = vec![0u32; (last - first + 1) as usize * parts];
        for column in columns {
            let bar = (column.peak / width - first) as usize;
            counts[bar * parts + column.cluster.min(parts - 1)] += 1;
        }
        let total = |counts: &[u32]| counts.iter().sum::<u32>();
        let most = counts.chunks_exact(parts).map(total).max().unwrap_or(0);
        fleet.most = Quantity::count(most.into(), "rank", "ranks").exact;
        let capacity = said.or_else(|| {
            let of = |column: &vramscope_inference::MatrixColumn| {
                self.rows[shown.run[column.member]].card.capacity
            };
            columns.iter().filter_map(of).max().map(|capacity| capacity.0)
        });
        // A capacity that is far above would leave the peaks no room.
        let (from, mut to) = (first * width, (last + 1) * width);
        let is_near = |&bytes: &u64| bytes >= from && bytes <= to + (to - from) / 2;
        if let Some(near) = capacity.filter(is_near) {
            to = to.max(near + (to - from) / 16);
        }
        let at = |bytes: u64| (bytes as f64 - from as f64) / (to - from) as f64;
        fleet.capacity = capacity.filter(|&bytes| bytes >= from).map(|bytes| FleetTick {
            at: at(bytes).min(1.0),
            text: if bytes <= to {
                format!("capacity {}", Bytes(bytes))
            } else {
                format!("capacity {}, beyond the scale", Bytes(bytes))
            },
        });
        let ticks = byte_ticks(from as f64, to as f64, 4);
        let ticks = ticks.into_iter();
        fleet.ticks =
            ticks.map(|tick| FleetTick { at: at(tick.value as u64), text: tick.text }).collect();
        for (bar, parts) in (first..).zip(counts.chunks_exact(parts)) {
            let count = total(parts);
            if count == 0 {
                continue;
            }
            let (x0, x1) = (bar * width, (bar + 1) * width);
            let mut top = 0;
            let tops = parts.iter().map(|&part| {
                top += part;
                f64::from(top) / f64::from(most)
            });
            fleet.bars.push(FleetBar {
                x0: at(x0),
                x1: at(x1),
                tops: tops.collect(),
                count,
                text: format!(
                    "{} to {}: {}",
                    Bytes(x0),
                    Bytes(x1),
                    Quantity::count(count.into(), "rank", "ranks").exact
                ),
                filter: format!(">={} <{}", written(x0), written(x1)),
            });
        }
    }

    fn add_iterations(&self, fleet: &mut Fleet, iterations: &[u64]) {
        let mut all: Vec<(u64, u64)> = Vec::new();
        for rank in &self.rows {
            if let Some(iteration) = rank.iteration().filter(|_| !iterations.is_empty()) {
                all.push((iteration, rank.requested().max(0).cast_unsigned()));
            }
        }
        all.sort_unstable();
        let of_iteration = |peaks: &[(u64, u64)]| {
            let peaks: Vec<u64> = peaks.iter().map(|peak| peak.1).collect();
            (median(&peaks), peaks.last().copied().unwrap_or(0))
        };
        let points: Vec<(u64, u64)> = all.chunk_by(|a, b| a.0 == b.0).map(of_iteration).collect();
        let highest = points.iter().map(|point| point.1).max().unwrap_or(0);
        let spaces = points.len().saturating_sub(1).max(1) as f64;
        for (place, (&iteration, &(median, max))) in iterations.iter().zip(&points).enumerate() {
            fleet.iterations.push(FleetIteration {
                iteration: Iteration(iteration),
                median: Quantity::bytes(Bytes(median)),
                max: Quantity::bytes(Bytes(max)),
                at: place as f64 / spaces,
            });
        }
        fleet.median_path = path(points.iter().map(|point| point.0), spaces, highest);
        fleet.max_path = path(points.iter().map(|point| point.1), spaces, highest);
    }
}

fn add_clusters(fleet: &mut Fleet, shown: &ShownMatrix, text: &str) {
    let clusters = &shown.matrix.clusters;
    let ranks: Vec<u32> = shown.matrix.columns.iter().map(|column| column.rank).collect();
    let sizes = sizes(text);
    let last = ranks.iter().max().map_or(0, |&rank| u64::from(rank) + 1);
    let whole = |of: Sizes| u64::from(of.data) * u64::from(of.tensor) * u64::from(of.pipeline);
    let fitting = sizes.filter(|&of| whole(of) == last);
    fleet.is_sized = fitting.is_some();
    fleet.sizes = match (sizes, fitting) {
        (Some(of), Some(_)) => format!(
            "rank = (pp x {} + dp) x {} + tp, as in Megatron-LM and torchtitan",
            of.data, of.tensor
        ),
        (Some(of), None) => format!(
            "{} x {} x {} are {} ranks, and the run has {}",
            of.data,
            of.tensor,
            of.pipeline,
            grouped(whole(of)),
            grouped(last)
        ),
        (None, _) if text.trim().is_empty() => String::new(),
        (None, _) => "Expected three sizes, such as 64/4/4".to_owned(),
    };
    for (number, cluster) in (1..).zip(clusters) {
        let columns = cluster.first..cluster.first + cluster.ranks.len();
        let peaks: Vec<u64> =
            shown.matrix.columns[columns].iter().map(|column| column.peak).collect();
        fleet.clusters.push(FleetCluster {
            text: named(&cluster.ranks),
            place: fitting.map(|sizes| place(&cluster.ranks, sizes)).unwrap_or_default(),
            count: Quantity::count(peaks.len() as u64, "rank", "ranks"),
            median: Quantity::bytes(Bytes(median(&peaks))),
            max: Quantity::bytes(Bytes(peaks.iter().copied().max().unwrap_or(0))),
            filter: format!("cluster:{number}"),
        });
    }
}

/// Points at equal distances as a line in a box of [`SERIES`].
fn path(values: impl Iterator<Item = u64>, spaces: f64, highest: u64) -> String {
    let mut path = Path::default();
    for (at, value) in values.enumerate() {
        let x = at as f64 / spaces * f64::from(SERIES[0]);
        let y = (1.0 - value as f64 / highest.max(1) as f64) * f64::from(SERIES[1]);
        path.to(if at == 0 { "M" } else { "L" }, x);
        path.to(" ", y);
    }
    path.into()
}

/// Bytes as a filter reads them, exactly.
fn written(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Three sizes: of data, tensor and pipeline parallel groups.
fn sizes(text: &str) -> Option<Sizes> {
    let mut parts = text.split('/').map(|part| part.trim().parse().ok().filter(|&size| size > 0));
    let (data, tensor, pipeline) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(Sizes { data, tensor, pipeline })
}

/// Where ranks are among the parallel groups: the coordinates that not all ranks of the run have.
/// `pp 0, tp 0-3`; empty if the ranks are no such block.
fn place(ranks: &[u32], sizes: Sizes) -> String {
    let Sizes { data, tensor, pipeline } = sizes;
    let axes: [(&str, u32, u32); 3] =
        [("pp", data * tensor, pipeline), ("dp", tensor, data), ("tp", 1, tensor)];
    let mut words: Vec<String> = Vec::new();
    let mut block = 1;
    for (name, stride, size) in axes {
        let mut at: Vec<u32> = ranks.iter().map(|rank| rank / stride % size).collect();
        at.sort_unstable();
        at.dedup();
        block *= at.len();
        if at.len() < size as usize {
            words.push(format!("{name} {}", numbers(&at)));
        }
    }
    if block == ranks.len() { words.join(", ") } else { String::new() }
}
