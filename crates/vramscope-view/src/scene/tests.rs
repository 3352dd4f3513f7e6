//! Tests of a scene without a GPU: tiles, hits, and user input.

use std::convert::Infallible;

use vramscope_render::{Color, MERGED, Strips};

use super::{Hit, Scene};
use crate::motion::Action;
use crate::screen::Screen;
use crate::tile::{Area, Axis, AxisKind, PlotKind, TileKey};

const PEAK: f64 = 1e9;
const AXIS: Axis = Axis { kind: AxisKind::Event, extent: 100_000.0, origin: 1.0, peak: 50_000.0 };

/// A plot of 1000 x 400 device pixels with its lower left corner at 64, 24.
fn scene() -> Scene<usize> {
    let mut scene = Scene::default();
    scene.resize(Screen::new(1076.0, 432.0, 1.0));
    scene.open(AXIS, PEAK, PlotKind::Bytes, 64.0);
    scene
}

/// A full tile: block 7 in the lower half, and a merged strip with largest block 8 in the upper
/// half.
fn tile() -> Strips {
    let mut strips = Strips::default();
    strips.push([0.0, 0.0, 512.0, 512.0], Color::new(0, 0), 7);
    strips.push([0.0, 512.0, 512.0, 1024.0], Color::new(0, 0), 0x8 | MERGED);
    strips
}

fn put_all(scene: &mut Scene<usize>) -> Vec<TileKey> {
    let keys = scene.wanted().to_vec();
    for key in &keys {
        scene.put_tile(*key, tile());
    }
    let done: Result<(), Infallible> = scene.cache.upload(usize::MAX, |strips| Ok(strips.len()));
    assert_eq!(done, Ok(()));
    keys
}

fn placed(scene: &mut Scene<usize>) -> usize {
    let mut n = 0;
    scene.place_tiles(|_, _| n += 1);
    n
}

#[test]
fn wanted_lists_missing_tiles_only_when_a_new_one_is_missing() {
    let mut scene = scene();
    let first = scene.wanted().to_vec();
    // 100 slots per pixel need columns of 128. 1.08e9 bytes on 400 pixels need rows of 2^21.
    assert!(first.iter().all(|key| key.kx == 7 && key.ky == 21), "{first:?}");
    assert_eq!(first.len(), 2);
    assert!(scene.wanted().is_empty());
    scene.put_tile(first[0], tile());
    assert!(scene.wanted().is_empty());
    // A worker drops earlier requests, so a new list has all tiles that are still missing.
    scene.resize(Screen::new(1076.0, 32.0 + 1200.0, 1.0));
    let second = scene.wanted().to_vec();
    assert!(second.iter().all(|key| key.ky < 21) && !second.is_empty());
    scene.resize(Screen::new(1076.0, 432.0, 1.0));
    assert_eq!(scene.wanted(), &first[1..]);
}

#[test]
fn wanted_is_empty_without_space_or_data() {
    let mut scene: Scene<usize> = Scene::default();
    scene.open(AXIS, PEAK, PlotKind::Bytes, 64.0);
    assert!(scene.wanted().is_empty());
    scene.resize(Screen::new(1076.0, 432.0, 1.0));
    scene.open(AXIS, 0.0, PlotKind::Bytes, 64.0);
    assert!(scene.wanted().is_empty());
    scene.open(AXIS, f64::NAN, PlotKind::Bytes, 64.0);
    assert!(scene.wanted().is_empty());
    scene.close();
    assert!(scene.wanted().is_empty());
    scene.put_tile(TileKey { kx: 0, ky: 0, ix: 0, iy: 0 }, tile());
    assert!(scene.cache.is_empty(), "a tile that arrives after closing is dropped");
}

#[test]
fn hit_returns_the_strip_of_the_last_frame() {
    let mut scene = scene();
    put_all(&mut scene);
    assert_eq!(scene.hit(564.0, 300.0), None, "no frame has been drawn yet");
    assert_eq!(placed(&mut scene), 2);
    // The tile's lower half has 512 rows of 2 MiB, which is higher than the view.
    let hit = scene.hit(564.0, 300.0);
    let Some(Hit { block: 7, merged: false, slot, bytes, kx: 7, ky: 21, .. }) = hit else {
        panic!("{hit:?}")
    };
    assert!((slot - 50_000.0).abs() < 1e-6 && (bytes - 0.27 * PEAK * 1.08).abs() < 1e6);
    assert_eq!(scene.hit(10.0, 300.0), None);
    // No hit above the peak, although the tile has a strip there.
    assert_eq!(scene.hit(564.0, 9.0), None);
}

#[test]
fn old_tiles_cover_a_new_view_until_its_tiles_arrive() {
    let mut scene = scene();
    put_all(&mut scene);
    scene.set_view(Area { x0: 1000.0, x1: 3000.0, y0: 0.0, y1: 1e8 });
    assert!(placed(&mut scene) >= 1);
    let hit = scene.hit(564.0, 300.0);
    assert!(matches!(hit, Some(Hit { kx: 7, ky: 21, .. })), "{hit:?}");
    put_all(&mut scene);
    placed(&mut scene);
    let hit = scene.hit(564.0, 300.0);
    assert!(matches!(hit, Some(Hit { kx: 1, ky: 17, .. })), "{hit:?}");
}

#[test]
fn panning_requests_only_tiles_that_come_into_view() {
    let mut scene = scene();
    // Columns of one slot and rows of 2^17 bytes. 1000 x 400 pixels intersect 2 tiles, or 3 after
    // panning.
    let view = Area { x0: 2048.0, x1: 3048.0, y0: 0.0, y1: 1e8 };
    scene.set_view(view);
    let before = put_all(&mut scene);
    assert_eq!(before.iter().map(|key| (key.kx, key.ix)).collect::<Vec<_>>(), [(0, 4), (0, 5)]);
    // Panning by 20 slots stays within the two tiles. Panning by 300 slots needs one more tile, and
    // the others are not requested again.
    scene.set_view(Area { x0: view.x0 + 20.0, x1: view.x1 + 20.0, ..view });
    assert!(scene.wanted().is_empty());
    scene.set_view(Area { x0: view.x0 + 300.0, x1: view.x1 + 300.0, ..view });
    // Until that tile arrives, the other two are drawn.
    assert_eq!(placed(&mut scene), 2);
    assert_eq!(put_all(&mut scene).iter().map(|key| key.ix).collect::<Vec<_>>(), [6]);
    assert_eq!(placed(&mut scene), 3);
    scene.set_view(view);
    assert!(scene.wanted().is_empty(), "panning back requests no tiles");
    assert_eq!(placed(&mut scene), 2);
}

#[test]
fn drag_pans_and_wheel_zoom_keeps_the_slot() {
    let mut scene = scene();
    scene.set_view(Area { x0: 10_000.0, x1: 20_000.0, y0: 2e8, y1: 6e8 });
    scene.begin_drag(500.0, 200.0);
    scene.drag(600.0, 150.0);
    let view = scene.target();
    assert!((view.x0 - 9000.0).abs() < 1e-6 && (view.y0 - 1.5e8).abs() < 1.0, "{view:?}");
    scene.end_drag();
    scene.drag(0.0, 0.0);
    assert_eq!(scene.target(), view);
    let before = scene.screen().slot_at(&view, 300.0);
    scene.wheel([300.0, 100.0], [0.0, -240.0], 0, false, false);
    let after = scene.target();
    assert!(after.width() < view.width());
    assert!((scene.screen().slot_at(&after, 300.0) - before).abs() < 1e-6);
}

#[test]
fn jumps_are_animated_and_request_tiles_of_their_target() {
    let mut scene = scene();
    scene.fit_range(40_000.0, 40_100.0);
    assert!((scene.target().width() - 110.0).abs() < 1e-9);
    assert!(scene.wanted().iter().all(|key| key.kx == 0));
    assert!(scene.advance(1000.0) && scene.advance(1060.0));
    assert!(scene.view().width() < 100_000.0 && scene.view().width() > 110.0);
    assert!(!scene.advance(1120.0));
    assert_eq!(*scene.view(), scene.target());
    scene.set_smooth(false);
    scene.goto(500.0);
    assert!((f64::midpoint(scene.view().x0, scene.view().x1) - 500.5).abs() < 1e-9);
}

#[test]
fn keys_zoom_about_the_pointer_or_the_center() {
    let mut scene = scene();
    scene.hit(314.0, 200.0);
    let slot = scene.screen().slot_at(scene.view(), 314.0);
    scene.key(Action::ZoomIn, true, 0.0);
    assert!(scene.advance(100.0));
    assert!((scene.screen().slot_at(scene.view(), 314.0) - slot).abs() < 1e-6);
    scene.release_keys();
    scene.pointer_left();
    scene.fit();
    scene.advance(200.0);
    scene.advance(400.0);
    scene.key(Action::ZoomIn, true, 400.0);
    scene.advance(500.0);
    assert!((f64::midpoint(scene.view().x0, scene.view().x1) - 50_000.0).abs() < 1e-6);
}

#[test]
fn only_changes_make_the_scene_dirty() {
    let mut scene = scene();
    assert!(scene.take_dirty() && !scene.take_dirty());
    scene.set_hovered(None);
    assert!(!scene.take_dirty());
    scene.set_hovered(Some(3));
    assert!(scene.take_dirty());
    assert!(!scene.advance(0.0) && !scene.take_dirty());
}
