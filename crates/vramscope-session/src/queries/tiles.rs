//! Tiles of the timeline, the segments, the map and the flame graph.

use super::grouped::Stacks;
use super::lru_cache::LruCache;
use super::{Queries, Subject, segments};
use crate::derived::DerivedBuilder;
use crate::messages::views::{Bands, ColorBy, GroupBy, Layer};
use crate::messages::{AxisKind, DeviceRef, TileKey};
use crate::scheduler::{SLICE, entry_of};
use std::sync::Arc;
use vramscope_layout::{
    Axis, Cell, Color, Colors, Detail, Drawing, LargestSites, SegmentDrawing, SegmentTiles, States,
    Strips, TILE_COLUMNS, TILE_ROWS, Timeline, lines, outline,
};
use vramscope_report::{Derived, slot_after};
use vramscope_trace::slicing::{Budget, SlicedTask};
use vramscope_trace::{Series, parallel};

/// Cached colorings: two views, each with and without a search.
const MAX_COLORINGS: usize = 4;

/// The data that tiles are drawn from. Each part is computed when a tile first needs it.
pub(crate) struct Tiles {
    devices: Vec<(DeviceRef, DeviceTiles)>,
    colors: LruCache<Coloring, Arc<Colors>>,
    /// The orders of segment rows, which the page also lists as text.
    pub(super) orders: segments::Orders,
}

impl Default for Tiles {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            colors: LruCache::new(MAX_COLORINGS),
            orders: segments::Orders::default(),
        }
    }
}

/// The key of colors: the device, the attribute that they show, the search, and the events between
/// which they show changes instead.
type Coloring = (DeviceRef, ColorBy, String, Option<[i64; 2]>);

#[derive(Default)]
struct DeviceTiles {
    /// The timelines of each grouping.
    stacks: Stacks,
    segments: SlicedTask<Arc<SegmentTiles>>,
    /// `reserved_bytes` in every slot.
    reserved: SlicedTask<Series>,
    /// The call sites with distinct colors.
    sites: SlicedTask<Arc<LargestSites>>,
}

/// A tile that is being drawn.
pub(crate) struct PartialTile {
    pub(crate) timeline: Drawing,
    /// The drawn blocks of a timeline whose lines are not drawn yet, or no strips of an outline.
    lines: Option<(Strips, States)>,
    segments: Option<SegmentDrawing>,
    /// The finished tile.
    pub(crate) finished: Option<Strips>,
}

impl PartialTile {
    /// An empty tile.
    pub(crate) fn new(key: TileKey, layer: &Layer) -> Self {
        let cell = cell(key);
        let mut timeline = Drawing::new(cell, detail_of(layer));
        if has_shades(layer) {
            timeline = timeline.shaded();
        }
        Self { timeline, lines: None, segments: None, finished: None }
    }

    /// Draws a slice of the outline of a stack.
    fn draw_outline(&mut self, axis: Axis<'_>) {
        if self.finished.is_some() {
            return;
        }
        let made = || (Strips::default(), States::new(self.timeline.cell()));
        let (strips, states) = self.lines.get_or_insert_with(made);
        if states.find(axis, &mut 0, SLICE) {
            outline(axis, states, strips);
            self.finished = Some(std::mem::take(strips));
        }
    }

    /// Draws a slice of a timeline, then of the lines over it.
    fn draw_timeline(
        &mut self,
        timeline: &mut Timeline,
        axis: Axis<'_>,
        colors: &Colors,
        series: &[(&Series, Color)],
    ) {
        if self.finished.is_some() {
            return;
        }
        if let Some((strips, states)) = &mut self.lines {
            if states.find(axis, &mut 0, SLICE) {
                lines(axis, states, series, strips);
                self.finished = Some(std::mem::take(strips));
            }
        } else if timeline.draw(&mut self.timeline, axis, colors, SLICE) {
            let strips = self.timeline.finish().0;
            if series.is_empty() {
                self.finished = Some(strips);
            } else {
                self.lines = Some((strips, States::new(self.timeline.cell())));
            }
        }
    }
}

/// What the blocks of a layer's stack are grouped by.
fn group_by(layer: &Layer) -> GroupBy {
    if let Layer::Timeline { group, .. } = layer { *group } else { GroupBy::Block }
}

/// Which blocks of a layer have strips of their own. Groups are bands when all blocks of a group
/// have one color: merging them loses nothing but their edges.
pub(crate) fn detail_of(layer: &Layer) -> Detail {
    match layer {
        Layer::Timeline { search, .. } if !search.is_empty() => Detail::Hits,
        Layer::Timeline { group, color: ColorBy::Category, .. } if *group != GroupBy::Block => {
            Detail::Bands
        }
        _ => Detail::Blocks,
    }
}

/// Whether several groups of a layer's stack have one color, and need shades of it.
fn has_shades(layer: &Layer) -> bool {
    matches!(
        layer,
        Layer::Timeline { group: GroupBy::Line | GroupBy::Module, color: ColorBy::Category, .. }
    )
}

/// The cell of a key. Scales and positions beyond every file give an empty cell.
pub(super) fn cell(key: TileKey) -> Cell {
    let TileKey { kx, ky, ix, iy } = key;
    let (kx, ky) = (kx.min(44), ky.min(44));
    let corner =
        |i: u32, lines: u32, k: u8| (u64::from(i) * u64::from(lines)).saturating_mul(1 << k);
    Cell {
        kx,
        ky,
        slot: corner(ix, TILE_COLUMNS, kx),
        columns: TILE_COLUMNS,
        low: corner(iy, TILE_ROWS, ky),
        rows: TILE_ROWS,
    }
}

/// The outcome of a slice of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileStep {
    /// The slice is done; finished tiles have their strips.
    Drawn,
    /// The file has no such device, or the device no such axis.
    NoSuchTrace,
}

impl Queries {
    /// Runs a slice of drawing tiles of one layer, or of computing the data that they need.
    pub(crate) fn draw(
        &mut self,
        on: &Subject,
        derived: &mut DerivedBuilder,
        axis: AxisKind,
        layer: &Layer,
        partial: &mut [&mut PartialTile],
    ) -> TileStep {
        if !derived.is_ready(&on.file, on.device, &needs(layer)) {
            return TileStep::Drawn;
        }
        if let Layer::Flame { flame } = layer {
            if let Some(graph) = self.flames.poll(on, flame) {
                for tile in partial.iter_mut().filter(|tile| tile.finished.is_none()) {
                    tile.finished = Some(graph.strips(tile.timeline.cell()));
                }
            }
            return TileStep::Drawn;
        }
        if let Layer::Map { color, map, search } = layer {
            let between = map.from.map(|from| [from, map.event]);
            if let Some(map) = self.maps.poll(on, map)
                && let Some(colors) = self.tiles.colors(on, *color, search, between)
            {
                for tile in partial.iter_mut().filter(|tile| tile.finished.is_none()) {
                    tile.finished = Some(map.map.strips(tile.timeline.cell(), &colors));
                }
            }
            return TileStep::Drawn;
        }
        let Some(axis) = Axis::new(on.at().trace(), axis) else { return TileStep::NoSuchTrace };
        // `None` means that the slice computed data that the tiles need.
        let _: Option<()> = self.tiles.draw(on, axis, layer, partial);
        TileStep::Drawn
    }
}

/// The derived data that a layer is drawn from.
pub(crate) fn needs(layer: &Layer) -> Vec<Derived> {
    let (color, bands, group, search) = match layer {
        Layer::Outline {} => return Vec::new(),
        Layer::Timeline { group, color, bands, search } => (Some(*color), *bands, *group, search),
        Layer::Segments { color, search, .. } | Layer::Map { color, search, .. } => {
            (Some(*color), Bands::NONE, GroupBy::Block, search)
        }
        Layer::Flame { flame } => (None, Bands::NONE, GroupBy::Block, &flame.search),
    };
    // Filters need them.
    let is_filtered = !search.is_empty();
    let is_carved = bands.active
        || bands.allocated
        || color == Some(ColorBy::Segment)
        || !matches!(layer, Layer::Timeline { .. });
    let has_categories = color == Some(ColorBy::Category) || group != GroupBy::Block;
    let wanted = [
        (Derived::Carving, is_carved),
        (Derived::Categories, has_categories || is_filtered),
        (Derived::Steps, is_filtered),
        (Derived::Pools, bands.pools),
    ];
    wanted.into_iter().filter_map(|(what, is_wanted)| is_wanted.then_some(what)).collect()
}

impl Tiles {
    /// The stacks of a device.
    pub(super) fn stacks(&mut self, device: DeviceRef) -> &mut Stacks {
        &mut entry_of(&mut self.devices, device).stacks
    }

    /// The timeline that finds blocks under the pointer. Runs a slice of computing it; `None` until
    /// it is complete.
    pub(crate) fn timeline(&mut self, on: &Subject, layer: &Layer) -> Option<&mut Timeline> {
        self.stacks(on.device).timelines(on, group_by(layer))?.first_mut()
    }

    /// The name of a group of a layer's stack, once its groups are computed.
    pub(crate) fn group_name(&mut self, on: &Subject, layer: &Layer, group: u32) -> Option<String> {
        self.stacks(on.device).name(on.at(), group_by(layer), group)
    }

    /// Runs a slice of drawing tiles; `None` when the slice computed data that they need.
    fn draw(
        &mut self,
        on: &Subject,
        axis: Axis<'_>,
        layer: &Layer,
        partial: &mut [&mut PartialTile],
    ) -> Option<()> {
        let at = on.at();
        match layer {
            Layer::Timeline { group, color, bands, search } => {
                let colors = &self.colors(on, *color, search, None)?;
                let made = entry_of(&mut self.devices, on.device);
                if bands.reserved {
                    made.reserved.advance(|| reserved(on.clone())).then_some(())?;
                }
                let timelines = if search.is_empty() {
                    made.stacks.timelines(on, *group)?
                } else {
                    made.stacks.searched(on, *group, colors)?
                };
                let mut series: Vec<(&Series, Color)> = Vec::new();
                if bands.reserved {
                    series.push((made.reserved.done()?, Color::RESERVED));
                }
                if bands.pools {
                    let pools = at.entry.pools(at.index);
                    series.extend(pools.map(|pools| (&pools.height, Color::POOLS)));
                }
                if bands.active {
                    series.push((&at.entry.carving(at.index).active, Color::ACTIVE));
                }
                if bands.allocated {
                    series.push((&at.entry.carving(at.index).allocated, Color::ALLOCATED));
                }
                while timelines.len() < partial.len() {
                    timelines.extend_from_within(..1);
                }
                let mut pairs: Vec<_> = timelines.iter_mut().zip(partial).collect();
                parallel::each_mut(&mut pairs, |(timeline, tile)| {
                    tile.draw_timeline(timeline, axis, colors, &series);
                });
            }
            Layer::Segments { color, rows, search } => {
                let colors = &*self.colors(on, *color, search, None)?;
                let tiles = self.segments(on)?;
                let places = self.orders.poll(on, rows)?.places(rows);
                let carving = at.entry.carving(at.index);
                parallel::each_mut(partial, |tile| {
                    let cell = tile.timeline.cell();
                    let drawing = tile.segments.get_or_insert_with(|| SegmentDrawing::new(cell));
                    if tile.finished.is_none()
                        && tiles.draw(drawing, axis, carving, places, colors, SLICE)
                    {
                        tile.finished = Some(drawing.finish());
                    }
                });
            }
            Layer::Outline {} => parallel::each_mut(partial, |tile| tile.draw_outline(axis)),
            Layer::Flame { .. } | Layer::Map { .. } => {}
        }
        Some(())
    }

    /// The blocks of each segment; `None` while they are computed.
    fn segments(&mut self, on: &Subject) -> Option<Arc<SegmentTiles>> {
        let made = &mut entry_of(&mut self.devices, on.device).segments;
        made.advance(|| segment_tiles(on.clone())).then_some(())?;
        made.done().cloned()
    }

    /// The call sites with distinct colors; `None` while they are searched for.
    pub(super) fn sites(&mut self, on: &Subject) -> Option<Arc<LargestSites>> {
        let made = &mut entry_of(&mut self.devices, on.device).sites;
        made.advance(|| largest_sites(on.clone())).then_some(())?;
        made.done().cloned()
    }

    /// The colors of blocks; `None` while they are computed.
    fn colors(
        &mut self,
        on: &Subject,
        by: ColorBy,
        text: &str,
        between: Option<[i64; 2]>,
    ) -> Option<Arc<Colors>> {
        let segments = if by == ColorBy::Segment { self.segments(on)? } else { Arc::default() };
        let sites = if by == ColorBy::Stack { self.sites(on)? } else { Arc::default() };
        let wanted: Coloring = (on.device, by, text.to_owned(), between);
        let colors = self.colors.poll(wanted, |key| colors(on.clone(), key, segments, sites));
        colors.cloned()
    }
}

async fn reserved(on: Subject) -> Series {
    let at = on.at();
    at.trace().reserved(at.snapshot(), &mut Budget::of(SLICE)).await
}

async fn segment_tiles(on: Subject) -> Arc<SegmentTiles> {
    let (at, budget) = (on.at(), &mut Budget::of(SLICE));
    Arc::new(SegmentTiles::new(at.trace(), at.entry.carving(at.index), budget).await)
}

async fn largest_sites(on: Subject) -> Arc<LargestSites> {
    let (at, budget) = (on.at(), &mut Budget::of(SLICE));
    Arc::new(LargestSites::new(at.trace(), &at.entry.sites, budget).await)
}

async fn colors(
    on: Subject,
    (_, by, text, between): Coloring,
    segments: Arc<SegmentTiles>,
    sites: Arc<LargestSites>,
) -> Arc<Colors> {
    let budget = &mut Budget::of(SLICE);
    let at = on.at();
    let trace = at.trace();
    let colors = match by {
        _ if between.is_some() => {
            let slots = between.unwrap_or_default().map(|event| slot_after(trace, event));
            Colors::by_change(trace, slots, budget).await
        }
        ColorBy::Stack => Colors::by_largest_sites(trace, &at.entry.sites, &sites, budget).await,
        ColorBy::Category => {
            Colors::by_category(trace, at.entry.categories(at.index), budget).await
        }
        ColorBy::Size => Colors::by_size(trace, budget).await,
        ColorBy::Age => Colors::by_age(trace, budget).await,
        ColorBy::Stream => Colors::by_stream(trace, at.snapshot(), budget).await,
        ColorBy::Segment => Colors::by_segment(trace, &segments, budget).await,
    };
    Arc::new(match vramscope_report::search::Matcher::new(at, &text, budget).await {
        Some(found) => colors.dimmed(|block| found.block(at, block), budget).await,
        None => colors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::Loader;
    use crate::messages::TileKey;
    use crate::messages::views::{FlameSpec, ROW_UNITS, SegmentSpec};
    use std::path::Path;
    use vramscope_layout::NO_BLOCK;
    use vramscope_report::LoadedFile;

    const DEVICE: DeviceRef = DeviceRef { part: 0, device: 0 };

    fn load(name: &str) -> Arc<LoadedFile> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
        let mut loader = Loader::new(name, 0);
        loader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
        Arc::new(loader.finish().expect("a snapshot"))
    }

    /// A whole tile; `None` when there is no such trace or axis.
    fn tile(
        queries: &mut Queries,
        file: &Arc<LoadedFile>,
        device: DeviceRef,
        axis: AxisKind,
        layer: &Layer,
        key: TileKey,
    ) -> Option<Strips> {
        let on = Subject::new(file, device)?;
        let (mut tile, mut derived) = (PartialTile::new(key, layer), DerivedBuilder::default());
        while tile.finished.is_none() {
            let partial = &mut [&mut tile];
            if queries.draw(&on, &mut derived, axis, layer, partial) != TileStep::Drawn {
                return None;
            }
        }
        tile.finished
    }

    fn whole(file: &LoadedFile, high: u64) -> TileKey {
        let slots = file.entries[0].traces[0].slots();
        let fit = |n: u64, of: u32| (n / u64::from(of)).max(1).ilog2() as u8 + 1;
        TileKey { kx: fit(u64::from(slots), TILE_COLUMNS), ky: fit(high, TILE_ROWS), ix: 0, iy: 0 }
    }

    fn timeline(color: ColorBy, bands: Bands) -> Layer {
        Layer::Timeline { group: GroupBy::Block, color, bands, search: String::new() }
    }

    #[test]
    fn timelines_differ_in_color_only() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut queries = Queries::default();
        let key = whole(&file, file.entries[0].traces[0].reserved_band.peak as u64);
        let mut draw =
            |layer: &Layer| tile(&mut queries, &file, DEVICE, AxisKind::Event, layer, key);
        let kinds = [
            ColorBy::Stack,
            ColorBy::Category,
            ColorBy::Size,
            ColorBy::Age,
            ColorBy::Stream,
            ColorBy::Segment,
        ];
        let drawn = kinds.map(|by| draw(&timeline(by, Bands::NONE)).expect("a tile"));
        for one in &drawn {
            assert!(
                !one.is_empty()
                    && one.positions == drawn[0].positions
                    && one.blocks == drawn[0].blocks
            );
        }
        assert_ne!(drawn[0].colors, drawn[1].colors);
        let again = draw(&timeline(ColorBy::Category, Bands::NONE)).expect("a tile");
        assert_eq!(again, drawn[1], "an evicted coloring is computed again");
        // Lines are drawn after the stack, which does not change.
        let lines = draw(&timeline(ColorBy::Category, Bands::ALL)).expect("a tile");
        let stack = drawn[0].len();
        assert_eq!(&lines.positions[..stack], &drawn[0].positions[..]);
        assert!(lines.len() > stack + 3 && lines.blocks[stack..].iter().all(|&b| b == NO_BLOCK));
        for color in [Color::ALLOCATED, Color::ACTIVE, Color::RESERVED] {
            assert!(lines.colors[stack..].contains(&color.word()));
        }
        assert!(!lines.colors.contains(&Color::POOLS.word()), "no private pools");
        let reserved = Bands { reserved: true, ..Bands::NONE };
        let lines = draw(&timeline(ColorBy::Category, reserved)).expect("a tile");
        for (color, is_drawn) in
            [(Color::RESERVED, true), (Color::ACTIVE, false), (Color::ALLOCATED, false)]
        {
            assert_eq!(lines.colors.contains(&color.word()), is_drawn, "{color:?}");
        }
    }

    #[test]
    fn private_pools_have_a_line() {
        let file = load("recorded/t26/pools.pickle");
        let mut queries = Queries::default();
        let key = whole(&file, file.entries[0].traces[0].reserved_band.peak as u64);
        let mut draw = |bands| {
            let layer = timeline(ColorBy::Size, bands);
            tile(&mut queries, &file, DEVICE, AxisKind::Event, &layer, key).expect("a tile")
        };
        let (plain, lines) = (draw(Bands::NONE), draw(Bands::ALL));
        assert!(!plain.colors.contains(&Color::POOLS.word()));
        // At the last state, the line is at the height of the envelope.
        let pools = file.entries[0].pools(0).expect("private pools");
        let of_line = lines
            .colors
            .iter()
            .zip(&lines.positions)
            .filter(|(c, p)| **c == Color::POOLS.word() && p[0] < p[2]);
        let [_, low, _, high] =
            of_line.map(|(_, p)| *p).max_by(|a, b| a[2].total_cmp(&b[2])).expect("a line");
        let end = pools.height.at(pools.height.len() as u32 - 1) as f64 / f64::from(key.ky).exp2();
        assert_eq!([low, high], [end as f32; 2]);
    }

    #[test]
    fn tiles_of_flame_graphs_and_segments_are_drawn() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut queries = Queries::default();
        let mut draw =
            |layer: &Layer, key| tile(&mut queries, &file, DEVICE, AxisKind::Event, layer, key);
        let flame = Layer::Flame { flame: FlameSpec::default() };
        let strips = draw(&flame, TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }).expect("a tile");
        assert!(strips.len() > 10);
        let spans = file.entries[0].carving(0).segments.spans.len();
        let rows = SegmentSpec::default();
        let segments = Layer::Segments { color: ColorBy::Stack, rows, search: String::new() };
        let strips =
            draw(&segments, whole(&file, spans as u64 * u64::from(ROW_UNITS))).expect("a tile");
        let grounds = strips.blocks.iter().filter(|&&b| b == NO_BLOCK).count();
        assert!(0 < grounds && grounds <= spans && strips.len() > spans);
        let beyond = DeviceRef { part: 0, device: 9 };
        let key = TileKey { kx: 255, ky: 255, ix: u32::MAX, iy: u32::MAX };
        assert_eq!(tile(&mut queries, &file, beyond, AxisKind::Event, &segments, key), None);
        for layer in [&segments, &flame, &timeline(ColorBy::Size, Bands::ALL)] {
            let strips = tile(&mut queries, &file, DEVICE, AxisKind::Event, layer, key);
            assert!(strips.is_some_and(|s| s.is_empty()), "no strips beyond the file: {layer:?}");
        }
    }
}
