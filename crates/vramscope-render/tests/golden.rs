//! Tests of the GL programs on the system's software OpenGL ES 3: exact pixels, and two golden
//! images.

mod support;

use std::path::PathBuf;

use support::{Canvas, Picture};
use vramscope_render::gl::{
    Counters, Rect, RectRenderer, StripRenderer, StripStyle, clear, scissor,
};
use vramscope_render::{
    Color, HATCH_GAP, MERGED, NO_BLOCK, Palette, PixelRect, Placement, Rgba, Strips, Surfaces,
    TILE_COLUMNS, TILE_ROWS, Theme,
};

const SIZE: [u32; 2] = [640, 400];
const ALL: [f64; 4] = [0.0, 0.0, 640.0, 400.0];

fn style(theme: Theme) -> StripStyle {
    let s = Surfaces::new(theme);
    StripStyle {
        ground: s.ground,
        accent: s.accent,
        lift: s.lift,
        selected: None,
        ends: None,
        hovered: None,
        line: 1.0,
    }
}

fn strip_renderer(gl: &glow::Context, theme: Theme) -> StripRenderer {
    StripRenderer::new(gl, &Palette::new(theme)).expect("the strips program links")
}

/// Draws tiles on an empty canvas.
fn draw(
    canvas: &Canvas,
    theme: Theme,
    style: &StripStyle,
    tiles: &[(&Strips, Placement)],
) -> (Picture, Counters) {
    let gl = &canvas.gl;
    let mut counters = Counters::default();
    let mut renderer = strip_renderer(gl, theme);
    clear(gl, canvas.size, Surfaces::new(theme).ground);
    let mut uploaded = Vec::new();
    for (strips, placement) in tiles {
        let tile = renderer.upload(gl, strips.columns()).expect("the tile fits in GPU memory");
        renderer.place(&tile, *placement);
        uploaded.push(tile);
    }
    renderer.draw(gl, canvas.size, style, &mut counters);
    let picture = canvas.read();
    for tile in uploaded {
        renderer.release(tile);
    }
    renderer.destroy(gl);
    (picture, counters)
}

fn one(position: [f32; 4], color: Color, block: u32) -> Strips {
    let mut strips = Strips::default();
    strips.push(position, color, block);
    strips
}

/// One pixel per column and per row, with the lower left corner at `x`, `y`.
fn plain(x: f64, y: f64) -> Placement {
    Placement::new([x, y], [1.0, 1.0], ALL)
}

fn mixed(a: Rgba, b: Rgba, t: f32) -> Rgba {
    std::array::from_fn(|i| (f32::from(a[i]) * (1.0 - t) + f32::from(b[i]) * t).round() as u8)
}

fn close(a: Rgba, b: Rgba) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 1)
}

/// Number of pixels in a column that are not background.
fn count_column(picture: &Picture, x: u32, ground: Rgba) -> usize {
    (0..SIZE[1]).filter(|&y| picture.at(x, y) != ground).count()
}

#[test]
fn strips_fill_exactly_the_snapped_pixels() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let ground = Surfaces::new(Theme::Dark).ground;
    for (corner, scale) in
        [([20.3, 11.7], [1.37, 0.61]), ([0.5, 0.5], [1.0, 1.0]), ([-900.25, -80.5], [3.9, 2.3])]
    {
        let placement = Placement::new(corner, scale, ALL);
        let strips = one([230.0, 41.25, 292.0, 127.5], Color::new(30, 1), 3);
        let (picture, _) = draw(&canvas, Theme::Dark, &style(Theme::Dark), &[(&strips, placement)]);
        let seen = placement.snap(strips.positions[0]);
        assert!(!seen.is_empty());
        for y in 0..SIZE[1] {
            for x in 0..SIZE[0] {
                let inside = seen.contains(x as f32, y as f32);
                assert_eq!(picture.at(x, y) != ground, inside, "pixel {x},{y} of {seen:?}");
            }
        }
    }
}

#[test]
fn strips_have_palette_colors_and_a_hairline_above_three_pixels() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    for theme in [Theme::Dark, Theme::Light] {
        let (palette, ground) = (Palette::new(theme), Surfaces::new(theme).ground);
        let words = [Color::new(0, 0), Color::new(200, 1), Color::new(77, 3), Color::NO_STACK];
        let mut strips = Strips::default();
        for (i, word) in words.iter().enumerate() {
            let x = 10.0 + 20.0 * i as f32;
            strips.push([x, 5.0, x + 20.0, 8.0], *word, 0);
            strips.push([x, 8.0, x + 20.0, 28.0], *word, 1);
        }
        let (picture, counters) =
            draw(&canvas, theme, &style(theme), &[(&strips, plain(0.0, 0.0))]);
        assert_eq!(counters, Counters { draws: 1, strips: 8, instances: 8 });
        for (i, word) in words.iter().enumerate() {
            let x = 20 + 20 * i as u32;
            let color = palette.rgba(*word);
            for y in 5..27 {
                assert_eq!(picture.at(x, y), color, "{theme:?} {word:?} row {y}");
            }
            assert!(
                close(picture.at(x, 27), mixed(color, ground, 0.45)),
                "{:?}",
                picture.at(x, 27)
            );
            assert_eq!(picture.at(x, 28), ground);
            assert_eq!(count_column(&picture, x, ground), 23);
        }
    }
}

#[test]
fn merged_strips_have_no_hairline() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let word = Color::new(77, 3);
    let color = Palette::new(Theme::Dark).rgba(word);
    let strips = one([10.0, 5.0, 30.0, 28.0], word, 1 | MERGED);
    let (picture, _) =
        draw(&canvas, Theme::Dark, &style(Theme::Dark), &[(&strips, plain(0.0, 0.0))]);
    for y in 5..28 {
        assert_eq!(picture.at(20, y), color, "row {y}");
    }
}

#[test]
fn only_the_selected_block_is_outlined_and_only_the_hovered_block_is_lightened() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let theme = Theme::Dark;
    let (surfaces, color) = (Surfaces::new(theme), Color::new(10, 2));
    let plain_color = Palette::new(theme).rgba(color);
    let mut strips = Strips::default();
    for (i, block) in [6, 7, 0x7 | MERGED, 8].into_iter().enumerate() {
        let y = 10.0 + 20.0 * i as f32;
        strips.push([10.0, y, 110.0, y + 20.0], color, block);
    }
    let chosen = StripStyle {
        selected: Some(7),
        ends: Some([10.0, 110.0]),
        hovered: Some(8),
        line: 2.0,
        ..style(theme)
    };
    let (picture, _) = draw(&canvas, theme, &chosen, &[(&strips, plain(0.0, 0.0))]);
    let tint = mixed(plain_color, surfaces.accent, 0.35);
    for (y, wanted) in [
        (30, surfaces.accent),
        (31, surfaces.accent),
        (32, tint),
        (47, tint),
        (48, surfaces.accent),
    ] {
        assert!(
            close(picture.at(60, y), wanted),
            "row {y}: {:?}, expected {wanted:?}",
            picture.at(60, y)
        );
    }
    for (x, wanted) in [
        (10, surfaces.accent),
        (11, surfaces.accent),
        (12, tint),
        (107, tint),
        (108, surfaces.accent),
    ] {
        assert!(
            close(picture.at(x, 40), wanted),
            "column {x}: {:?}, expected {wanted:?}",
            picture.at(x, 40)
        );
    }
    assert_eq!(picture.at(60, 20), plain_color);
    assert_eq!(picture.at(60, 60), plain_color, "merged strips are not outlined");
    assert!(close(picture.at(60, 80), mixed(plain_color, surfaces.lift, 0.25)));
}

#[test]
fn lines_have_a_fixed_width_and_a_casing_at_every_scale() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    for theme in [Theme::Dark, Theme::Light] {
        let (palette, ground) = (Palette::new(theme), Surfaces::new(theme).ground);
        let (block, line) = (palette.rgba(Color::new(40, 2)), palette.rgba(Color::RESERVED));
        // Level in columns 0 to 60, a jump from row 50.5 to row 90.5, level to column 100.
        for scale in [1.0, 2.5] {
            let mut strips = one([0.0, 0.0, 120.0, 120.0], Color::new(40, 2), 1);
            for color in [Color::CASING, Color::RESERVED] {
                strips.push([0.0, 50.5, 60.0, 50.5], color, NO_BLOCK);
                strips.push([60.0, 50.5, 60.0, 90.5], color, NO_BLOCK);
                strips.push([60.0, 90.5, 100.0, 90.5], color, NO_BLOCK);
            }
            let placement = Placement::new([0.0, 0.0], [scale, scale], ALL);
            let (picture, _) = draw(&canvas, theme, &style(theme), &[(&strips, placement)]);
            let drawn = |at: &mut dyn Iterator<Item = Rgba>| {
                at.filter(|&color| !close(color, block)).collect::<Vec<_>>()
            };
            let x = (30.0 * scale) as u32;
            let across = drawn(&mut (1..(70.0 * scale) as u32).map(|y| picture.at(x, y)));
            // The casing is at most one pixel on both sides of the stroke and its soft edge.
            assert!((3..=5).contains(&across.len()), "{theme:?} {scale}: {across:?}");
            assert!(across.iter().any(|&color| close(color, line)), "{across:?}");
            assert!(close(across[0], ground) && across.last().is_some_and(|&c| close(c, ground)));
            let y = (70.0 * scale) as u32;
            let jump = drawn(&mut (1..(90.0 * scale) as u32).map(|x| picture.at(x, y)));
            assert_eq!(jump.iter().filter(|&&color| close(color, line)).count(), 1, "{jump:?}");
            assert_eq!(jump.len(), 3, "{theme:?} {scale}: {jump:?}");
            // The corner is closed.
            let corner = picture.at((60.0 * scale) as u32, (50.5 * scale) as u32);
            assert!(close(corner, line), "{corner:?}");
        }
    }
}

#[test]
fn lines_outside_the_clip_are_not_drawn() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let ground = Surfaces::new(Theme::Dark).ground;
    let mut strips = Strips::default();
    strips.push([3.0, 10.0, 3.0, 90.0], Color::RESERVED, NO_BLOCK);
    strips.push([0.0, 10.0, 0.0, 90.0], Color::RESERVED, NO_BLOCK);
    strips.push([0.0, -9.0, 500.0, -9.0], Color::RESERVED, NO_BLOCK);
    let placement = Placement::new([-50.0, 0.0], [1.0, 1.0], ALL);
    let (picture, _) = draw(&canvas, Theme::Dark, &style(Theme::Dark), &[(&strips, placement)]);
    for x in 0..SIZE[0] {
        assert_eq!(count_column(&picture, x, ground), 0, "column {x}");
    }
}

#[test]
fn a_hatch_has_stripes_of_the_color_and_of_the_background() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let theme = Theme::Dark;
    let color = Palette::new(theme).rgba(Color::SEGMENT);
    let gap = mixed(color, Surfaces::new(theme).ground, HATCH_GAP);
    let strips = one([10.0, 10.0, 130.0, 130.0], Color::SEGMENT.hatched(), NO_BLOCK);
    let (picture, _) = draw(&canvas, theme, &style(theme), &[(&strips, plain(0.0, 0.0))]);
    let mut counts = [0; 2];
    for y in 10..128 {
        for x in 10..130 {
            let seen = picture.at(x, y);
            assert!(close(seen, color) || close(seen, gap), "pixel {x},{y}: {seen:?}");
            counts[usize::from(close(seen, gap))] += 1;
        }
    }
    assert!(counts.iter().all(|&n| n > 6000), "{counts:?}");
}

#[test]
fn adjacent_tiles_have_no_gap_and_are_clipped() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let theme = Theme::Light;
    let ground = Surfaces::new(theme).ground;
    let full = one([0.0, 0.0, TILE_COLUMNS as f32, TILE_ROWS as f32], Color::new(90, 0), 1);
    // Two tiles side by side at a fractional scale, and a third tile above them that is clipped to
    // a part of the screen.
    let scale = [0.7313, 0.2917];
    let (w, h) = (scale[0] * 512.0, scale[1] * 1024.0);
    let corner = [-100.21, -30.77];
    let tiles = [
        (&full, Placement::new(corner, scale, ALL)),
        (&full, Placement::new([corner[0] + w, corner[1]], scale, ALL)),
        (&full, Placement::new([corner[0], corner[1] + h], scale, [40.0, 0.0, 60.0, 290.0])),
    ];
    let (picture, _) = draw(&canvas, theme, &style(theme), &tiles);
    let top = (corner[1] + h).round() as u32;
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            let inside = y < top || ((40..60).contains(&x) && y < 290);
            let inside = inside && f64::from(x) < corner[0] + 2.0 * w;
            assert_eq!(picture.at(x, y) != ground, inside, "pixel {x},{y}");
        }
    }
}

#[test]
fn many_tiles_need_few_draw_calls_and_chunks_are_reused() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    let gl = &canvas.gl;
    let mut renderer = strip_renderer(gl, Theme::Dark);
    let mut strips = Strips::default();
    for i in 0..32_768u32 {
        let (x, y) = ((i % 512) as f32, (i / 512 * 16) as f32);
        strips.push([x, y, x + 1.0, y + 16.0], Color::new(i as u8, 0), i);
    }
    for _ in 0..3 {
        let tiles: Vec<_> = (0..20)
            .map(|_| renderer.upload(gl, strips.columns()).expect("the tile fits in GPU memory"))
            .collect();
        let mut counters = Counters::default();
        clear(gl, canvas.size, [0, 0, 0, 255]);
        for (i, tile) in tiles.iter().enumerate() {
            let corner = [(i % 5) as f64 * 128.0, (i / 5) as f64 * 100.0];
            renderer.place(tile, Placement::new(corner, [0.25, 0.1], ALL));
        }
        renderer.draw(gl, canvas.size, &style(Theme::Dark), &mut counters);
        // 640 chunks in pages of 512.
        assert_eq!(counters, Counters { draws: 2, strips: 20 * 32_768, instances: 20 * 32_768 });
        assert_eq!(count_column(&canvas.read(), 639, [0, 0, 0, 255]), 400);
        for tile in tiles {
            renderer.release(tile);
        }
    }
    renderer.destroy(gl);
}

/// A synthetic scene with all kinds of strips and rectangles.
fn scene(canvas: &Canvas, theme: Theme) -> Picture {
    let gl = &canvas.gl;
    let s = Surfaces::new(theme);
    let mut counters = Counters::default();
    let mut strips = strip_renderer(gl, theme);
    let mut rects = RectRenderer::new(gl).expect("the rects program links");
    let plot = PixelRect { x0: 40.0, y0: 20.0, x1: 630.0, y1: 390.0 };
    let rect = |x0: f32, y0: f32, x1: f32, y1: f32, color, dash| Rect {
        at: PixelRect { x0, y0, x1, y1 },
        color,
        dash,
    };
    clear(gl, canvas.size, s.ground);
    let grid: Vec<Rect> = (1..5)
        .map(|i| i as f32 * 80.0 + 20.0)
        .map(|y| rect(40.0, y, 630.0, y + 1.0, s.grid, 0.0))
        .collect();
    rects.draw(gl, canvas.size, &grid, &mut counters);
    scissor(gl, plot);

    let mut tile = Strips::default();
    // The hue wheel, one row per lightness step.
    for step in 0..4 {
        for hue in 0..=255u8 {
            let (x, y) = (f32::from(hue), f32::from(step) * 12.0);
            tile.push([x, y, x + 1.0, y + 12.0], Color::new(hue, step), 0);
        }
    }
    // Long blocks of many heights, then a pyramid of blocks that move down when a lower block ends.
    let mut y = 48.0;
    for (i, height) in
        [20.0, 14.0, 9.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.75, 0.5, 8.0].into_iter().enumerate()
    {
        tile.push(
            [0.0, y, 500.0, y + height],
            Color::new((i * 9 + 150) as u8, (i % 4) as u8),
            100 + i as u32,
        );
        y += height;
    }
    tile.push([0.0, y, 500.0, y + 5.0], Color::NO_STACK, 0x500 | MERGED);
    y += 5.0;
    for i in 0..16u8 {
        let (x, low) = (f32::from(i) * 15.0, y + f32::from(i) * 11.0);
        for slide in 0..4u8 {
            let (from, drop) =
                (x + 120.0 + f32::from(slide) * 60.0, f32::from(slide.min(i)) * 11.0);
            let from = if slide == 0 { x } else { from };
            let to = (x + 120.0 + f32::from(slide + 1) * 60.0).min(500.0);
            if from >= to {
                continue;
            }
            let block = if i == 9 { 7 } else { 200 + u32::from(i) };
            tile.push(
                [from, low - drop, to, low - drop + 11.0],
                Color::new(i.wrapping_mul(37), i % 4),
                block,
            );
        }
    }
    let uploaded = strips.upload(gl, tile.columns()).expect("the tile fits in GPU memory");
    let corner = [f64::from(plot.x0), f64::from(plot.y0)];
    strips.place(&uploaded, Placement::new(corner, [1.13, 1.0], [40.0, 20.0, 630.0, 390.0]));
    let drawn = StripStyle {
        selected: Some(7),
        ends: Some([40.0 + 1.13 * 135.0, 40.0 + 1.13 * 495.0]),
        hovered: Some(100),
        line: 1.0,
        ..style(theme)
    };
    strips.draw(gl, canvas.size, &drawn, &mut counters);
    let marks = [
        rect(40.0, 19.0, 630.0, 20.0, s.baseline, 0.0),
        rect(40.0, 345.0, 630.0, 346.0, s.mark, 8.0),
        rect(300.0, 346.0, 301.0, 390.0, s.mark, 0.0),
    ];
    scissor(gl, PixelRect { x0: 0.0, y0: 0.0, x1: 640.0, y1: 400.0 });
    rects.draw(gl, canvas.size, &marks, &mut counters);
    assert_eq!(counters.draws, 3);
    let picture = canvas.read();
    strips.release(uploaded);
    strips.destroy(gl);
    rects.destroy(gl);
    picture
}

#[test]
fn scene_matches_golden_images() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    for (theme, name) in [(Theme::Dark, "scene-dark.png"), (Theme::Light, "scene-light.png")] {
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
        scene(&canvas, theme).check(&golden);
    }
}
