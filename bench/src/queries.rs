//! Measures tiles of the timeline, from the whole trace to single events: time, nodes and states.

use crate::CHUNK;
use crate::analyse::load;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vramscope_layout::{Axis, AxisKind, Cell, Colors, Cost, TILE_COLUMNS, TILE_ROWS, Timeline};
use vramscope_session::messages::views::{Bands, ColorBy, GroupBy, Layer, ROW_UNITS, SegmentSpec};
use vramscope_session::messages::{DeviceRef, Request, Response};
use vramscope_session::{FileSession, Slice};
use vramscope_trace::slicing::now;
use vramscope_view::grid::{Cells, level, nearest_first};
use vramscope_view::tile::{Area, TileKey};
use vramscope_view::viewport::Bounds;

/// Size of the plot, in device pixels.
const SIZE: [f64; 2] = [1600.0, 800.0];

/// Name of a view, and its shares of the slots and of the bytes.
const VIEWS: [(&str, f64, f64); 8] = [
    ("whole", 1.0, 1.0),
    ("1/10", 0.1, 1.0),
    ("1/100", 0.01, 1.0),
    ("1/1000", 0.001, 1.0),
    ("1/10, 1/10 high", 0.1, 0.1),
    ("1/100, 1/10 high", 0.01, 0.1),
    ("1/1000, 1/100 high", 0.001, 0.01),
    ("deepest", 0.0, 0.0),
];

#[derive(Default)]
struct Sum {
    time: Duration,
    longest: Duration,
    tiles: usize,
    most: usize,
    strips: usize,
    cost: Cost,
}

pub(crate) fn run(path: &Path, runs: u32, only: Option<&str>) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let file = load(&bytes)?;
    let part = &file.entries[0];
    let trace = part.default_trace().context("a device")?;
    let colors = now(async |budget| Colors::by_site(trace, &part.sites, budget).await);
    let start = Instant::now();
    let mut timeline = now(async |budget| Timeline::new(trace, budget).await);
    let made = start.elapsed();
    println!(
        "{}: {} events, {} blocks; made in {:.1} ms",
        path.display(),
        trace.slots() - 1,
        trace.blocks.len(),
        made.as_secs_f64() * 1e3
    );
    for kind in [AxisKind::Event, AxisKind::Time] {
        let Some(axis) = Axis::new(trace, kind) else { continue };
        println!(
            "\n{:<24} {:>6} {:>8} {:>8} {:>10} {:>10} {:>10} {:>5} {:>8} {:>7} {:>7}",
            format!("{kind:?} axis").to_lowercase(),
            "tiles",
            "ms",
            "longest",
            "nodes",
            "updates",
            "changes",
            "again",
            "strips",
            "most",
            "c"
        );
        let bounds = Bounds::bytes(axis.extent() as f64, trace.requested_band.peak.max(0) as f64);
        let whole = bounds.fit();
        let peak = trace.requested_band.peak_event.map_or(0, |event| event + 1);
        let at = [axis.slot_of(peak) as f64, bounds.peak / 2.0];
        for (name, of_slots, of_bytes) in VIEWS {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let (width, height) = (whole.width() * of_slots, whole.height() * of_bytes);
            let (width, height) = (width.max(SIZE[0].min(whole.width())), height.max(64.0));
            let view = Area {
                x0: at[0] - width / 2.0,
                x1: at[0] + width / 2.0,
                y0: at[1] - height / 2.0,
                y1: at[1] + height / 2.0,
            };
            let view = bounds.clamp(view);
            let by = view.width() / 10.0;
            let panned = bounds.clamp(Area { x0: view.x0 + by, x1: view.x1 + by, ..view });
            for (name, view, before) in
                [(name.to_owned(), view, None), (format!("{name}, panned"), panned, Some(view))]
            {
                let keys = keys(&view, &bounds, before.as_ref());
                let mut best: Option<Sum> = None;
                for _ in 0..runs {
                    let sum = draw(&mut timeline, axis, &colors, &keys);
                    if best.as_ref().is_none_or(|best| sum.time < best.time) {
                        best = Some(sum);
                    }
                }
                print(&name, &best.unwrap_or_default());
            }
        }
    }
    if only.is_some() {
        return Ok(());
    }
    let peak = trace.requested_band.peak.max(0) as f64;
    let (slots, device) = (f64::from(trace.slots()), trace.device.device);
    let spans =
        part.carving(part.traces.iter().position(|t| std::ptr::eq(t, trace)).context("its trace")?);
    let rows = spans.segments.spans.len() as f64 * f64::from(ROW_UNITS);
    drop(file);
    slices(&bytes, device, slots, peak, rows)
}

/// Draws the whole view of each layer through a session, as in a worker.
fn slices(bytes: &[u8], device: u32, slots: f64, peak: f64, rows: f64) -> Result<()> {
    let mut session = FileSession::new("bench", bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        if let Err(failure) = session.feed(chunk) {
            bail!("{}", failure.message);
        }
    }
    let Response::Loaded(_) = session.finish() else { bail!("not loaded") };
    println!(
        "\n{:<40} {:>6} {:>8} {:>8} {:>8}",
        "slices of the whole view", "tiles", "slices", "ms", "longest"
    );
    let timeline = |color, bands: Bands| Layer::Timeline {
        group: GroupBy::Block,
        color,
        bands,
        search: String::new(),
    };
    let segments = Layer::Segments {
        color: ColorBy::Stack,
        rows: SegmentSpec::default(),
        search: String::new(),
    };
    let layers = [
        ("timeline by stack", timeline(ColorBy::Stack, Bands::NONE), peak),
        ("timeline by category, with lines", timeline(ColorBy::Category, Bands::ALL), peak),
        ("segments", segments, rows),
    ];
    for (name, layer, height) in layers {
        // The first row includes the data that the first tile computes.
        for name in [format!("{name}, first time"), name.to_owned()] {
            let bounds = Bounds::bytes(slots, height);
            let keys = keys(&bounds.fit(), &bounds, None);
            let tiles = keys
                .iter()
                .map(|&TileKey { kx, ky, ix, iy }| vramscope_session::messages::TileKey {
                    kx,
                    ky,
                    ix,
                    iy,
                })
                .collect();
            let target = DeviceRef { part: 0, device };
            let axis = vramscope_session::messages::AxisKind::Event;
            session.post(Request::Tiles { id: 0, target, axis, layer: layer.clone(), tiles });
            let (mut count, mut all, mut longest) = (0, Duration::ZERO, Duration::ZERO);
            loop {
                let (start, spent) = (Instant::now(), processor_time());
                let slice = session.slice();
                // The processor time of this thread excludes that of others.
                let alone = vramscope_trace::parallel::threads() == 1;
                let time =
                    if alone { processor_time().saturating_sub(spent) } else { start.elapsed() };
                match slice {
                    Slice::Idle => break,
                    Slice::Working | Slice::Answer(_) => {
                        count += 1;
                        all += time;
                        longest = longest.max(time);
                    }
                }
            }
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            println!(
                "{name:<40} {:>6} {count:>8} {:>8.1} {:>8.1}",
                keys.len(),
                ms(all),
                ms(longest)
            );
        }
    }
    Ok(())
}

/// Processor time of this thread, which other programs do not affect. Linux only; wall time
/// elsewhere.
pub(crate) fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|text| text.split(' ').next()?.parse().ok().map(Duration::from_nanos));
    told.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Keys of the tiles that the page requests, in its order, without the tiles of the view `before`.
fn keys(view: &Area, bounds: &Bounds, before: Option<&Area>) -> Vec<TileKey> {
    let at = level(view, SIZE);
    let mut keys: Vec<TileKey> = Cells::of(&view.and(&bounds.drawn()), at).iter().collect();
    if let Some(before) = before.filter(|before| level(before, SIZE) == at) {
        let known: Vec<TileKey> = Cells::of(&before.and(&bounds.drawn()), at).iter().collect();
        keys.retain(|key| !known.contains(key));
    }
    nearest_first(&mut keys, [f64::midpoint(view.x0, view.x1), f64::midpoint(view.y0, view.y1)]);
    keys
}

fn draw(timeline: &mut Timeline, axis: Axis<'_>, colors: &Colors, keys: &[TileKey]) -> Sum {
    let mut sum = Sum { tiles: keys.len(), ..Sum::default() };
    for key in keys {
        let cell = Cell {
            kx: key.kx,
            ky: key.ky,
            slot: (u64::from(key.ix) * u64::from(TILE_COLUMNS)) << key.kx,
            columns: TILE_COLUMNS,
            low: (u64::from(key.iy) * u64::from(TILE_ROWS)) << key.ky,
            rows: TILE_ROWS,
        };
        let start = Instant::now();
        let (strips, cost) = timeline.strips(axis, cell, colors);
        let time = start.elapsed();
        sum.time += time;
        sum.longest = sum.longest.max(time);
        sum.strips += strips.len();
        sum.most = sum.most.max(strips.len());
        sum.cost.nodes += cost.nodes;
        sum.cost.updates += cost.updates;
        sum.cost.changes += cost.changes;
        sum.cost.retries += cost.retries;
    }
    sum
}

fn print(name: &str, sum: &Sum) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let area = sum.tiles as f64 * f64::from(TILE_COLUMNS) * f64::from(TILE_ROWS);
    println!(
        "{name:<24} {:>6} {:>8.1} {:>8.1} {:>10} {:>10} {:>10} {:>5} {:>8} {:>7} {:>7.2}",
        sum.tiles,
        ms(sum.time),
        ms(sum.longest),
        sum.cost.nodes,
        sum.cost.updates,
        sum.cost.changes,
        sum.cost.retries,
        sum.strips,
        sum.most,
        sum.cost.nodes as f64 / area.max(1.0),
    );
}
