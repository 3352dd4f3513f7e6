//! Tiles of what is not the plain timeline.

use super::{Views, find, search, segments};
use crate::engine::{Half, SLICE, device, with_timelines};
use crate::file::File;
use crate::making::{Making, Needs};
use crate::protocol::views::{ColorBy, Layer};
use crate::protocol::{AxisKind, DeviceRef};
use crate::report::Target;
use std::sync::Arc;
use vramscope_analysis::slicing::{Budget, SlicedTask};
use vramscope_analysis::{Series, parallel};
use vramscope_layout::{
    Axis, Color, Colors, SegmentDrawing, SegmentTiles, States, Timeline, lines,
};

/// How many sets of colors are kept: those of two views, and of what was there before a search.
const COLORINGS: usize = 4;

/// What drawing needs, made when it is first drawn.
#[derive(Default)]
pub(crate) struct Tiles {
    devices: Vec<(DeviceRef, Device)>,
    /// The latest last.
    colors: Vec<(Coloring, SlicedTask<Option<Colors>>)>,
    /// Of the segments' rows, which are also told in words.
    pub(super) orders: segments::Orders,
}

/// What colors depend on.
type Coloring = (DeviceRef, ColorBy, String);

#[derive(Default)]
struct Device {
    /// One for each tile that is drawn at the same time.
    timelines: SlicedTask<Vec<Timeline>>,
    segments: SlicedTask<Option<Arc<SegmentTiles>>>,
    /// `reserved_bytes` in every slot.
    reserved: SlicedTask<Series>,
}

/// As [`Views::tile`].
#[expect(clippy::option_option, reason = "no tile of these views, and no such tile")]
pub(crate) fn tile(
    views: &mut Views,
    file: &Arc<File>,
    making: &mut Making,
    target: DeviceRef,
    axis: AxisKind,
    layer: &Layer,
    halves: &mut [Half],
) -> Option<Option<()>> {
    if let Layer::Timeline { color: ColorBy::Stack, bands: false, search } = layer
        && search.is_empty()
    {
        return None;
    }
    Some(find(file, target).and_then(|at| {
        let axis = match layer {
            Layer::Flame { .. } => None,
            _ => Some(Axis::new(at.trace(), axis.into())?),
        };
        if !making.is_ready(file, target, needs(layer)) {
            return Some(());
        }
        if let Layer::Flame { flame } = layer {
            if !views.flames.is_ready(file, target, flame) {
                return Some(());
            }
            let graph = views.flames.get(at, target, flame);
            for half in halves.iter_mut().filter(|half| half.whole.is_none()) {
                half.whole = Some(graph.strips(half.timeline.cell()));
            }
        } else {
            views.tiles.draw(file, at, target, axis?, layer, halves);
        }
        Some(())
    }))
}

fn needs(layer: &Layer) -> Needs {
    let (color, bands) = match layer {
        Layer::Timeline { color, bands, .. } => (Some(*color), *bands),
        Layer::Segments { color, .. } => (Some(*color), false),
        Layer::Flame { .. } => (None, false),
    };
    Needs {
        carving: bands
            || color == Some(ColorBy::Segment)
            || !matches!(layer, Layer::Timeline { .. }),
        categories: color == Some(ColorBy::Category),
        pools: bands,
        anomalies: false,
    }
}

impl Tiles {
    /// A slice of tiles; `None` when it was one of what they need.
    fn draw(
        &mut self,
        file: &Arc<File>,
        at: Target<'_>,
        target: DeviceRef,
        axis: Axis<'_>,
        layer: &Layer,
        halves: &mut [Half],
    ) -> Option<()> {
        match layer {
            Layer::Timeline { color, bands, search } => {
                let coloring = self.color(file, target, *color, search)?;
                let device = device(&mut self.devices, target);
                if *bands {
                    device.reserved.advance(|| reserved(file.clone(), target)).then_some(())?;
                }
                device.timelines.advance(|| timelines(file.clone(), target)).then_some(())?;
                let colors = self.colors[coloring].1.done()?.as_ref()?;
                let mut series: Vec<(&Series, Color)> = Vec::new();
                if *bands {
                    let carving = at.part.carving(at.index);
                    series.push((device.reserved.done()?, Color::RESERVED));
                    series
                        .extend(at.part.pools(at.index).map(|pools| (&pools.height, Color::POOLS)));
                    series.push((&carving.active, Color::ACTIVE));
                    series.push((&carving.allocated, Color::ALLOCATED));
                }
                let timelines = device.timelines.done_mut()?;
                parallel::each_mut(&mut with_timelines(timelines, halves), |(timeline, half)| {
                    half.timeline(timeline, axis, colors, &series);
                });
            }
            Layer::Segments { color, rows, search } => {
                let coloring = self.color(file, target, *color, search)?;
                let tiles = self.segments(file, target)?;
                self.orders.is_ready(file, target, rows).then_some(())?;
                let places = self.orders.get(at, target, rows).places(rows);
                let (carving, colors) =
                    (at.part.carving(at.index), self.colors[coloring].1.done()?.as_ref()?);
                parallel::each_mut(halves, |half| {
                    let drawing = half
                        .segments
                        .get_or_insert_with(|| SegmentDrawing::new(half.timeline.cell()));
                    if half.whole.is_none()
                        && tiles.draw(drawing, axis, carving, places, colors, SLICE)
                    {
                        half.whole = Some(drawing.finish());
                    }
                });
            }
            Layer::Flame { .. } => {}
        }
        Some(())
    }

    /// Which blocks lie in which segment; `None` while that is being made.
    fn segments(&mut self, file: &Arc<File>, target: DeviceRef) -> Option<Arc<SegmentTiles>> {
        let made = &mut device(&mut self.devices, target).segments;
        made.advance(|| segment_tiles(file.clone(), target)).then_some(())?;
        made.done()?.clone()
    }

    /// The index of the colors that are asked for; `None` while they are being made.
    fn color(
        &mut self,
        file: &Arc<File>,
        target: DeviceRef,
        by: ColorBy,
        text: &str,
    ) -> Option<usize> {
        let segments =
            if by == ColorBy::Segment { Some(self.segments(file, target)?) } else { None };
        let wanted: Coloring = (target, by, text.to_owned());
        if let Some(known) = self.colors.iter().position(|(c, _)| *c == wanted) {
            self.colors[known..].rotate_left(1);
        } else {
            if self.colors.len() == COLORINGS {
                self.colors.remove(0);
            }
            self.colors.push((wanted.clone(), SlicedTask::default()));
        }
        let last = self.colors.len() - 1;
        self.colors[last].1.advance(|| colors(file.clone(), wanted, segments)).then_some(last)
    }
}

impl Half {
    /// Goes on with a timeline, and then with the lines over it.
    fn timeline(
        &mut self,
        timeline: &mut Timeline,
        axis: Axis<'_>,
        colors: &Colors,
        series: &[(&Series, Color)],
    ) {
        if self.whole.is_some() {
            return;
        }
        if let Some((strips, states)) = &mut self.lines {
            if states.find(axis, &mut 0, SLICE) {
                lines(axis, states, series, strips);
                self.whole = Some(std::mem::take(strips));
            }
        } else if timeline.draw(&mut self.timeline, axis, colors, SLICE) {
            let strips = self.timeline.finish().0;
            if series.is_empty() {
                self.whole = Some(strips);
            } else {
                self.lines = Some((strips, States::new(self.timeline.cell())));
            }
        }
    }
}

async fn timelines(file: Arc<File>, target: DeviceRef) -> Vec<Timeline> {
    let Some((_, trace)) = file.trace(target) else { return Vec::new() };
    vec![Timeline::sliced(trace, &mut Budget::of(SLICE)).await]
}

async fn reserved(file: Arc<File>, target: DeviceRef) -> Series {
    let Some((part, trace)) = file.trace(target) else { return Series::default() };
    trace.reserved_sliced(&part.snapshot, &mut Budget::of(SLICE)).await
}

async fn segment_tiles(file: Arc<File>, target: DeviceRef) -> Option<Arc<SegmentTiles>> {
    let at = find(&file, target)?;
    Some(Arc::new(
        SegmentTiles::sliced(at.trace(), at.part.carving(at.index), &mut Budget::of(SLICE)).await,
    ))
}

async fn colors(
    file: Arc<File>,
    (target, by, text): Coloring,
    segments: Option<Arc<SegmentTiles>>,
) -> Option<Colors> {
    let budget = &mut Budget::of(SLICE);
    let at = find(&file, target)?;
    let trace = at.trace();
    let colors = match by {
        ColorBy::Stack => Colors::by_site_sliced(trace, &at.part.sites, budget).await,
        ColorBy::Category => Colors::by_category(trace, at.part.categories(at.index), budget).await,
        ColorBy::Size => Colors::by_size(trace, budget).await,
        ColorBy::Age => Colors::by_age(trace, budget).await,
        ColorBy::Stream => Colors::by_stream(trace, at.snapshot(), budget).await,
        ColorBy::Segment => Colors::by_segment(trace, &*segments?, budget).await,
    };
    match search::Matcher::new(at, &text, budget).await {
        Some(found) => Some(colors.dimmed(|block| found.block(at, block), budget).await),
        None => Some(colors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Loader;
    use crate::protocol::TileKey;
    use crate::protocol::views::{FlameSpec, ROW_UNITS, SegmentSpec};
    use std::path::Path;
    use vramscope_layout::{NO_BLOCK, Strips, TILE_COLUMNS, TILE_ROWS};

    const DEVICE: DeviceRef = DeviceRef { part: 0, device: 0 };

    fn load(name: &str) -> Arc<File> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
        let mut loader = Loader::new(name, 0);
        loader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
        Arc::new(loader.finish().expect("a snapshot"))
    }

    #[expect(clippy::option_option, reason = "as the function it calls")]
    fn tile(
        views: &mut Views,
        file: &Arc<File>,
        target: DeviceRef,
        axis: AxisKind,
        layer: &Layer,
        key: TileKey,
    ) -> Option<Option<Strips>> {
        let (mut halves, mut making) = ([Half::new(key)], Making::default());
        while super::tile(views, file, &mut making, target, axis, layer, &mut halves)?.is_some() {
            if halves[0].whole.is_some() {
                return Some(halves[0].whole.take());
            }
        }
        Some(None)
    }

    fn whole(file: &File, high: u64) -> TileKey {
        let slots = file.parts[0].traces[0].slots();
        let fit = |n: u64, of: u32| (n / u64::from(of)).max(1).ilog2() as u8 + 1;
        TileKey { kx: fit(u64::from(slots), TILE_COLUMNS), ky: fit(high, TILE_ROWS), ix: 0, iy: 0 }
    }

    fn timeline(color: ColorBy, bands: bool) -> Layer {
        Layer::Timeline { color, bands, search: String::new() }
    }

    #[test]
    fn the_plain_timeline_is_the_engines_and_others_differ_in_color_only() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut views = Views::default();
        let key = whole(&file, file.parts[0].traces[0].reserved_band.peak as u64);
        let mut draw = |layer: &Layer| tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key);
        assert_eq!(draw(&timeline(ColorBy::Stack, false)), None);
        let kinds =
            [ColorBy::Category, ColorBy::Size, ColorBy::Age, ColorBy::Stream, ColorBy::Segment];
        let drawn = kinds.map(|by| draw(&timeline(by, false)).flatten().expect("a tile"));
        for one in &drawn {
            assert!(
                !one.is_empty()
                    && one.positions == drawn[0].positions
                    && one.blocks == drawn[0].blocks
            );
        }
        assert_ne!(drawn[0].colors, drawn[1].colors);
        let again = draw(&timeline(ColorBy::Category, false)).flatten().expect("a tile");
        assert_eq!(again, drawn[0], "what is no longer kept is made again");
        // Lines come after the stack, which stays as it is.
        let lines = draw(&timeline(ColorBy::Category, true)).flatten().expect("a tile");
        let stack = drawn[0].len();
        assert_eq!(&lines.positions[..stack], &drawn[0].positions[..]);
        assert!(lines.len() > stack + 3 && lines.blocks[stack..].iter().all(|&b| b == NO_BLOCK));
        for color in [Color::ALLOCATED, Color::ACTIVE, Color::RESERVED] {
            assert!(lines.colors[stack..].contains(&color.word()));
        }
        assert!(!lines.colors.contains(&Color::POOLS.word()), "it has no private pools");
    }

    #[test]
    fn private_pools_are_a_line_where_there_are_any() {
        let file = load("recorded/t26/pools.pickle");
        let mut views = Views::default();
        let key = whole(&file, file.parts[0].traces[0].reserved_band.peak as u64);
        let mut draw = |bands| {
            let layer = timeline(ColorBy::Size, bands);
            tile(&mut views, &file, DEVICE, AxisKind::Event, &layer, key).flatten().expect("a tile")
        };
        let (plain, lines) = (draw(false), draw(true));
        assert!(!plain.colors.contains(&Color::POOLS.word()));
        // Where the last state is shown the line is as high as the envelope there, give or take its
        // own two rows.
        let pools = file.parts[0].pools(0).expect("it has private pools");
        let of_line =
            lines.colors.iter().zip(&lines.positions).filter(|(c, _)| **c == Color::POOLS.word());
        let [_, low, _, high] =
            of_line.map(|(_, p)| *p).max_by(|a, b| a[2].total_cmp(&b[2])).expect("a line");
        let end = (pools.height.at(pools.height.len() as u32 - 1) >> key.ky) as f32;
        assert!(low <= end && end <= high, "{low} {end} {high}");
    }

    #[test]
    fn tiles_of_flame_graphs_and_segments_are_drawn() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut views = Views::default();
        let mut draw = |layer: &Layer, key| {
            tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key).flatten()
        };
        let flame = Layer::Flame { flame: FlameSpec::default() };
        let strips = draw(&flame, TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }).expect("a tile");
        assert!(strips.len() > 10);
        let spans = file.parts[0].carving(0).segments.spans.len();
        let rows = SegmentSpec::default();
        let segments = Layer::Segments { color: ColorBy::Stack, rows, search: String::new() };
        let strips =
            draw(&segments, whole(&file, spans as u64 * u64::from(ROW_UNITS))).expect("a tile");
        let grounds = strips.blocks.iter().filter(|&&b| b == NO_BLOCK).count();
        assert!(0 < grounds && grounds <= spans && strips.len() > spans);
        let beyond = DeviceRef { part: 0, device: 9 };
        let key = TileKey { kx: 255, ky: 255, ix: u32::MAX, iy: u32::MAX };
        assert_eq!(tile(&mut views, &file, beyond, AxisKind::Event, &segments, key), Some(None));
        for layer in [&segments, &flame, &timeline(ColorBy::Size, true)] {
            let strips = tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key).flatten();
            assert!(strips.is_some_and(|s| s.is_empty()), "nothing is so far away: {layer:?}");
        }
    }
}
