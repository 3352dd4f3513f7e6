//! Tiles of what is not the plain timeline.

use super::{Views, find, search, segments};
use crate::engine::{Drawn, Half};
use crate::file::File;
use crate::protocol::views::{ColourBy, Layer, SegmentSpec};
use crate::protocol::{AxisKind, DeviceRef};
use crate::report::Target;
use memstrata_layout::{Axis, Colour, Colours, SegmentDrawing, SegmentTiles, Strips, Timeline, lines};

/// How many sets of colours are kept: those of two views, and of what was there before a search.
const COLOURINGS: usize = 4;

/// What drawing needs, made when it is first drawn.
#[derive(Default)]
pub(crate) struct Tiles {
    devices: Vec<(DeviceRef, Device)>,
    /// The latest last.
    colours: Vec<(Colouring, Colours)>,
    rows: Option<Rows>,
}

/// The rows of a segments view: spans with their edges, from the top.
type Rows = (DeviceRef, SegmentSpec, Vec<(u32, f64, f64)>);

/// What colours depend on.
type Colouring = (DeviceRef, ColourBy, String);

#[derive(Default)]
struct Device {
    timeline: Option<Timeline>,
    segments: Option<SegmentTiles>,
    /// `reserved_bytes` in every slot.
    reserved: Vec<u64>,
}

impl Device {
    fn segments(&mut self, at: Target<'_>) -> &SegmentTiles {
        self.segments.get_or_insert_with(|| SegmentTiles::new(at.trace(), at.part.carving(at.index)))
    }
}

/// As [`Views::tile`].
#[expect(clippy::option_option, reason = "no tile of these views, and no such tile")]
pub(crate) fn tile(
    views: &mut Views,
    file: &File,
    target: DeviceRef,
    axis: AxisKind,
    layer: &Layer,
    half: &mut Half,
    work: u64,
) -> Option<Option<Drawn>> {
    if let Layer::Timeline { colour: ColourBy::Stack, bands: false, search } = layer
        && search.is_empty()
    {
        return None;
    }
    Some(find(file, target).and_then(|at| {
        if let Layer::Flame { flame } = layer {
            return Some(Drawn::Whole(views.flames.get(at, target, flame).strips(half.timeline.cell())));
        }
        let axis = Axis::new(at.trace(), axis.into())?;
        Some(views.tiles.draw(at, target, axis, layer, half, work))
    }))
}

impl Tiles {
    fn draw(
        &mut self,
        at: Target<'_>,
        target: DeviceRef,
        axis: Axis<'_>,
        layer: &Layer,
        half: &mut Half,
        work: u64,
    ) -> Drawn {
        let cell = half.timeline.cell();
        let strips = match layer {
            Layer::Timeline { colour, bands, search } => {
                let colouring = self.colour(at, target, *colour, search);
                let device = device(&mut self.devices, target);
                let timeline = device.timeline.get_or_insert_with(|| Timeline::new(at.trace()));
                if !timeline.draw(&mut half.timeline, axis, &self.colours[colouring].1, work) {
                    return Drawn::Partly;
                }
                let (mut strips, _) = half.timeline.finish();
                if *bands {
                    if device.reserved.is_empty() {
                        device.reserved = at.trace().reserved(at.snapshot());
                    }
                    let carving = at.part.carving(at.index);
                    let mut series = vec![(&device.reserved[..], Colour::RESERVED)];
                    series.extend(at.part.pools(at.index).map(|pools| (&pools.height[..], Colour::POOLS)));
                    series.push((&carving.active, Colour::ACTIVE));
                    series.push((&carving.allocated, Colour::ALLOCATED));
                    lines(axis, cell, &series, &mut strips);
                }
                strips
            }
            Layer::Segments { colour, rows, search } => {
                let colouring = self.colour(at, target, *colour, search);
                self.order(at, target, rows);
                let places = self.rows.as_ref().map_or(&[][..], |(_, _, places)| places);
                let tiles = device(&mut self.devices, target).segments(at);
                let drawing = half.segments.get_or_insert_with(|| SegmentDrawing::new(cell));
                let (carving, colours) = (at.part.carving(at.index), &self.colours[colouring].1);
                // A block here costs about as much as eight nodes there.
                if !tiles.draw(drawing, axis, carving, places, colours, work / 8) {
                    return Drawn::Partly;
                }
                drawing.finish()
            }
            Layer::Flame { .. } => Strips::default(),
        };
        Drawn::Whole(strips)
    }

    /// The rows of the segments view, from the top.
    fn order(&mut self, at: Target<'_>, target: DeviceRef, spec: &SegmentSpec) {
        if self.rows.as_ref().is_some_and(|(of, known, _)| *of == target && known == spec) {
            return;
        }
        let order = segments::order(at, spec);
        let (edges, _) = segments::edges(&order, spec.grown);
        let places = order.into_iter().zip(edges).map(|(span, [low, high])| (span, low, high)).collect();
        self.rows = Some((target, spec.clone(), places));
    }

    /// The index of the colours that are asked for.
    fn colour(&mut self, at: Target<'_>, target: DeviceRef, by: ColourBy, text: &str) -> usize {
        let wanted: Colouring = (target, by, text.to_owned());
        if let Some(known) = self.colours.iter().position(|(c, _)| *c == wanted) {
            self.colours[known..].rotate_left(1);
            return self.colours.len() - 1;
        }
        let trace = at.trace();
        let colours = match by {
            ColourBy::Stack => Colours::by_site(trace, &at.part.sites),
            ColourBy::Category => Colours::by_category(trace, at.part.categories(at.index)),
            ColourBy::Size => Colours::by_size(trace),
            ColourBy::Age => Colours::by_age(trace),
            ColourBy::Stream => Colours::by_stream(trace, at.snapshot()),
            ColourBy::Segment => Colours::by_segment(trace, device(&mut self.devices, target).segments(at)),
        };
        let found = if text.is_empty() { None } else { search::Matcher::new(at, text) };
        let colours = match found {
            Some(found) => colours.dimmed(|block| found.block(at, block)),
            None => colours,
        };
        if self.colours.len() == COLOURINGS {
            self.colours.remove(0);
        }
        self.colours.push((wanted, colours));
        self.colours.len() - 1
    }
}

fn device(devices: &mut Vec<(DeviceRef, Device)>, target: DeviceRef) -> &mut Device {
    let at = devices.iter().position(|(made, _)| *made == target).unwrap_or_else(|| {
        devices.push((target, Device::default()));
        devices.len() - 1
    });
    &mut devices[at].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Loader;
    use crate::protocol::TileKey;
    use crate::protocol::views::{FlameSpec, ROW_UNITS};
    use memstrata_layout::{NO_BLOCK, TILE_COLUMNS, TILE_ROWS};
    use std::path::Path;

    const DEVICE: DeviceRef = DeviceRef { part: 0, device: 0 };

    fn load(name: &str) -> File {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
        let mut loader = Loader::new(name, 0);
        loader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
        loader.finish().expect("a snapshot")
    }

    #[expect(clippy::option_option, reason = "as the function it calls")]
    fn tile(
        views: &mut Views,
        file: &File,
        target: DeviceRef,
        axis: AxisKind,
        layer: &Layer,
        key: TileKey,
    ) -> Option<Option<Strips>> {
        let drawn = super::tile(views, file, target, axis, layer, &mut Half::new(key), u64::MAX)?;
        Some(drawn.map(|drawn| drawn.whole().expect("nothing stops it")))
    }

    fn whole(file: &File, high: u64) -> TileKey {
        let slots = file.parts[0].traces[0].slots();
        let fit = |n: u64, of: u32| (n / u64::from(of)).max(1).ilog2() as u8 + 1;
        TileKey { kx: fit(u64::from(slots), TILE_COLUMNS), ky: fit(high, TILE_ROWS), ix: 0, iy: 0 }
    }

    fn timeline(colour: ColourBy, bands: bool) -> Layer {
        Layer::Timeline { colour, bands, search: String::new() }
    }

    #[test]
    fn the_plain_timeline_is_the_engines_and_others_differ_in_colour_only() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut views = Views::default();
        let key = whole(&file, file.parts[0].traces[0].reserved_band.peak as u64);
        let mut draw = |layer: &Layer| tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key);
        assert_eq!(draw(&timeline(ColourBy::Stack, false)), None);
        let kinds = [ColourBy::Category, ColourBy::Size, ColourBy::Age, ColourBy::Stream, ColourBy::Segment];
        let drawn = kinds.map(|by| draw(&timeline(by, false)).flatten().expect("a tile"));
        for one in &drawn {
            assert!(!one.is_empty() && one.positions == drawn[0].positions && one.blocks == drawn[0].blocks);
        }
        assert_ne!(drawn[0].colours, drawn[1].colours);
        let again = draw(&timeline(ColourBy::Category, false)).flatten().expect("a tile");
        assert_eq!(again, drawn[0], "what is no longer kept is made again");
        // Lines come after the stack, which stays as it is.
        let lines = draw(&timeline(ColourBy::Category, true)).flatten().expect("a tile");
        let stack = drawn[0].len();
        assert_eq!(&lines.positions[..stack], &drawn[0].positions[..]);
        assert!(lines.len() > stack + 3 && lines.blocks[stack..].iter().all(|&b| b == NO_BLOCK));
        for colour in [Colour::ALLOCATED, Colour::ACTIVE, Colour::RESERVED] {
            assert!(lines.colours[stack..].contains(&colour.word()));
        }
        assert!(!lines.colours.contains(&Colour::POOLS.word()), "it has no private pools");
    }

    #[test]
    fn private_pools_are_a_line_where_there_are_any() {
        let file = load("recorded/t26/pools.pickle");
        let mut views = Views::default();
        let key = whole(&file, file.parts[0].traces[0].reserved_band.peak as u64);
        let mut draw = |bands| {
            let layer = timeline(ColourBy::Size, bands);
            tile(&mut views, &file, DEVICE, AxisKind::Event, &layer, key).flatten().expect("a tile")
        };
        let (plain, lines) = (draw(false), draw(true));
        assert!(!plain.colours.contains(&Colour::POOLS.word()));
        // Where the last state is shown the line is as high as the envelope there, give or take its own two rows.
        let pools = file.parts[0].pools(0).expect("it has private pools");
        let of_line = lines.colours.iter().zip(&lines.positions).filter(|(c, _)| **c == Colour::POOLS.word());
        let [_, low, _, high] = of_line.map(|(_, p)| *p).max_by(|a, b| a[2].total_cmp(&b[2])).expect("a line");
        let end = (*pools.height.last().expect("a slot") >> key.ky) as f32;
        assert!(low <= end && end <= high, "{low} {end} {high}");
    }

    #[test]
    fn tiles_of_flame_graphs_and_segments_are_drawn() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let mut views = Views::default();
        let mut draw = |layer: &Layer, key| tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key).flatten();
        let flame = Layer::Flame { flame: FlameSpec::default() };
        let strips = draw(&flame, TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }).expect("a tile");
        assert!(strips.len() > 10);
        let spans = file.parts[0].carving(0).segments.spans.len();
        let rows = SegmentSpec::default();
        let segments = Layer::Segments { colour: ColourBy::Stack, rows, search: String::new() };
        let strips = draw(&segments, whole(&file, spans as u64 * u64::from(ROW_UNITS))).expect("a tile");
        let grounds = strips.blocks.iter().filter(|&&b| b == NO_BLOCK).count();
        assert!(0 < grounds && grounds <= spans && strips.len() > spans);
        let beyond = DeviceRef { part: 0, device: 9 };
        let key = TileKey { kx: 255, ky: 255, ix: u32::MAX, iy: u32::MAX };
        assert_eq!(tile(&mut views, &file, beyond, AxisKind::Event, &segments, key), Some(None));
        for layer in [&segments, &flame, &timeline(ColourBy::Size, true)] {
            let strips = tile(&mut views, &file, DEVICE, AxisKind::Event, layer, key).flatten();
            assert!(strips.is_some_and(|s| s.is_empty()), "nothing is so far away: {layer:?}");
        }
    }
}
