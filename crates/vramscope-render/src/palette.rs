//! Maps color words to sRGB.
//!
//! The hue carries meaning (the call path), so lightness and chroma are constant around the wheel:
//! one pair for dark surfaces, and one for light surfaces. OKLCH is used because its lightness and
//! chroma match perception, unlike those of HSL. For colors outside sRGB, mostly cyan, the chroma
//! is reduced. The hue and the lightness never change.

use crate::Color;
use vramscope_units::color::{CATEGORIES, Rgb, SurfaceColor, css, label_on, surface_of};

/// The color scheme of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Theme {
    /// Light text on a dark background.
    #[default]
    Dark,
    /// Dark text on a light background.
    Light,
}

impl Theme {
    const fn choose(self, dark: Rgb, light: Rgb) -> Rgb {
        match self {
            Self::Dark => dark,
            Self::Light => light,
        }
    }
}

/// An opaque color as bytes: red, green, blue, 255.
pub type Rgba = [u8; 4];

const fn opaque([r, g, b]: Rgb) -> Rgba {
    [r, g, b, 255]
}

/// Number of entries of a palette: 256 hues in 4 steps, then the fixed colors. The rest of the last
/// row of 256 is the gray of [`Color::NO_STACK`].
pub const PALETTE_LEN: usize = 1280;

/// Share of the background in the gaps of a hatch. Must match `HATCH_GAP` of `strips.frag`.
pub const HATCH_GAP: f32 = 0.5;

/// Strength of a shade. Must match `SHADE` of `strips.vert`. With others, labels on some categories
/// have less contrast than 4.5.
const SHADE: f64 = 0.12;

/// The least share of hits that is drawn. Must match `LEAST_SHARE` of `strips.vert`.
const LEAST_SHARE: f64 = 0.2;

/// Mean lightness of the steps, chroma, and lightness difference between two steps.
const fn wheel(theme: Theme) -> (f64, f64, f64) {
    match theme {
        Theme::Dark => (0.66, 0.11, 0.025),
        Theme::Light => (0.74, 0.10, 0.025),
    }
}

/// The gray of blocks without a stack (lightness, chroma, hue). It is bluish like the surfaces, and
/// about as light as the wheel.
const fn gray(theme: Theme) -> (f64, f64, f64) {
    match theme {
        Theme::Dark => (0.65, 0.012, 255.0),
        Theme::Light => (0.74, 0.010, 255.0),
    }
}

/// The ramp color at `position` from 0 (low) to 1 (high). Lightness moves steadily away from the
/// background, and the hue changes with it.
fn ramp(theme: Theme, position: f64) -> Rgba {
    let (from, to) = match theme {
        Theme::Dark => ([0.61, 0.12, 285.0], [0.90, 0.14, 105.0]),
        Theme::Light => ([0.76, 0.11, 110.0], [0.42, 0.14, 290.0]),
    };
    let at = |i: usize| from[i] + (to[i] - from[i]) * position;
    srgb(at(0), at(1), at(2))
}

/// The color of a step of a comparison: blue for less, red for more. Chroma grows with the step,
/// and the lightness moves away from that of "equal", so that it shows without hues, too.
fn difference(theme: Theme, level: i8) -> Rgba {
    let share = f64::from(level.unsigned_abs()) / f64::from(Color::LEVELS);
    let ([lightness, chroma, hue], strongest) = match (theme, level.signum()) {
        (Theme::Dark, 0) => ([0.60, 0.008, 255.0], 0.60),
        (Theme::Dark, 1) => ([0.66, 0.17, 25.0], 0.70),
        (Theme::Dark, _) => ([0.66, 0.14, 250.0], 0.70),
        (Theme::Light, 0) => ([0.81, 0.006, 255.0], 0.81),
        (Theme::Light, 1) => ([0.81, 0.18, 25.0], 0.68),
        (Theme::Light, _) => ([0.81, 0.15, 250.0], 0.67),
    };
    srgb(lightness + (strongest - lightness) * share, chroma * (0.15 + 0.85 * share), hue)
}

/// Lightness, chroma and hue of the largest call sites. Neighbors are far apart in hue, and differ
/// in lightness.
const fn sites(theme: Theme) -> [[f64; 3]; Color::SITES as usize] {
    match theme {
        Theme::Dark => [
            [0.66, 0.15, 258.0],
            [0.79, 0.14, 75.0],
            [0.72, 0.15, 155.0],
            [0.66, 0.18, 25.0],
            [0.72, 0.15, 312.0],
            [0.82, 0.10, 205.0],
            [0.90, 0.15, 108.0],
            [0.78, 0.12, 352.0],
            [0.62, 0.08, 50.0],
            [0.80, 0.16, 132.0],
        ],
        Theme::Light => [
            [0.58, 0.15, 258.0],
            [0.74, 0.14, 72.0],
            [0.62, 0.14, 155.0],
            [0.60, 0.19, 25.0],
            [0.60, 0.17, 312.0],
            [0.74, 0.10, 205.0],
            [0.80, 0.15, 105.0],
            [0.70, 0.15, 352.0],
            [0.52, 0.08, 50.0],
            [0.70, 0.16, 132.0],
        ],
    }
}

/// Lightness, chroma and hue of the other fixed colors: dimmed, segment, other call sites, and the
/// lines of allocated, active and reserved bytes and of private pools.
const fn states_and_lines(theme: Theme) -> [[f64; 3]; 7] {
    match theme {
        Theme::Dark => [
            [0.34, 0.012, 255.0],
            [0.41, 0.015, 255.0],
            [0.55, 0.012, 255.0],
            [0.86, 0.10, 200.0],
            [0.80, 0.13, 150.0],
            [0.97, 0.01, 255.0],
            [0.78, 0.14, 303.0],
        ],
        Theme::Light => [
            [0.88, 0.008, 255.0],
            [0.765, 0.010, 255.0],
            [0.80, 0.010, 255.0],
            [0.52, 0.12, 220.0],
            [0.50, 0.13, 150.0],
            [0.30, 0.01, 255.0],
            [0.52, 0.19, 300.0],
        ],
    }
}

/// The sRGB colors of all color words in one theme.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    entries: Vec<Rgba>,
    surfaces: Surfaces,
}

impl Palette {
    /// The palette of a theme.
    pub fn new(theme: Theme) -> Self {
        let (middle, chroma, between) = wheel(theme);
        let mut entries = Vec::with_capacity(PALETTE_LEN);
        for step in 0..Color::STEPS {
            let lightness = middle + (f64::from(step) - 1.5) * between;
            for hue in 0..Color::HUES {
                entries.push(srgb(
                    lightness,
                    chroma,
                    f64::from(hue) / f64::from(Color::HUES) * 360.0,
                ));
            }
        }
        entries.extend(CATEGORIES.map(|of| opaque(theme.choose(of.dark, of.light))));
        entries.extend(
            (0..Color::RAMP).map(|step| ramp(theme, f64::from(step) / f64::from(Color::RAMP - 1))),
        );
        entries.extend(sites(theme).map(|[l, c, h]| srgb(l, c, h)));
        entries.extend(states_and_lines(theme).map(|[l, c, h]| srgb(l, c, h)));
        let surfaces = Surfaces::new(theme);
        entries.push(surfaces.ground);
        for level in -(Color::LEVELS as i8)..=Color::LEVELS as i8 {
            entries.push(difference(theme, level));
        }
        let (lightness, chroma, hue) = gray(theme);
        entries.resize(PALETTE_LEN, srgb(lightness, chroma, hue));
        Self { entries, surfaces }
    }

    /// All colors: entry `step * 256 + hue`, then the fixed colors, then the gray.
    pub fn entries(&self) -> &[Rgba] {
        &self.entries
    }

    /// The color of a word. That of a hatched color is the color of its stripes.
    pub fn rgba(&self, color: Color) -> Rgba {
        self.entries[(color.plain().word() as usize).min(PALETTE_LEN - 1)]
    }

    /// The color of a word in CSS notation, such as `#8a9097`.
    pub fn css(&self, color: Color) -> String {
        let [r, g, b, _] = self.rgba(color);
        css([r, g, b])
    }

    /// The color of a label on a strip of a word, in CSS notation: white or nearly black, whichever
    /// reads better on the color with its shade and its share of hits.
    pub fn ink(&self, color: Color) -> String {
        css(label_on(self.drawn(color)))
    }

    /// The color of a strip, as `strips.vert` mixes it.
    fn drawn(&self, color: Color) -> Rgb {
        let shaded = match color.shade() {
            1 => mix(self.rgba(color), self.surfaces.ground, SHADE),
            2 => mix(self.rgba(color), self.surfaces.lift, SHADE),
            _ => self.rgba(color),
        };
        let share = if color.share() > 0.0 { color.share().max(LEAST_SHARE) } else { 1.0 };
        let [r, g, b, _] = mix(self.rgba(Color::DIMMED), shaded, share);
        [r, g, b]
    }
}

/// `from`, with this share of `to`.
fn mix(from: Rgba, to: Rgba, share: f64) -> Rgba {
    std::array::from_fn(|i| {
        (f64::from(from[i]) * (1.0 - share) + f64::from(to[i]) * share).round() as u8
    })
}

/// The colors of a plot that do not show data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surfaces {
    /// The background of the plot.
    pub ground: Rgba,
    /// The background of every second step.
    pub shade: Rgba,
    /// Grid lines at round values, behind the data.
    pub grid: Rgba,
    /// The line under the stack.
    pub baseline: Rgba,
    /// The mark of the peak. The color of secondary text.
    pub mark: Rgba,
    /// The selected block.
    pub accent: Rgba,
    /// The color that is mixed into the hovered block.
    pub lift: Rgba,
    /// The capacity line.
    pub capacity: Rgba,
    /// The line of simulated reserved bytes.
    pub simulated: Rgba,
}

impl Surfaces {
    /// The surfaces of a theme.
    pub const fn new(theme: Theme) -> Self {
        Self {
            ground: shown(theme, surface_of("plot")),
            shade: shown(theme, surface_of("bg")),
            grid: shown(theme, surface_of("raise")),
            baseline: shown(theme, surface_of("line2")),
            mark: shown(theme, surface_of("dim")),
            accent: shown(theme, surface_of("accent")),
            lift: [0xff, 0xff, 0xff, 255],
            capacity: shown(theme, surface_of("danger")),
            simulated: opaque(theme.choose([0xff, 0x8f, 0xc7], [0xb8, 0x18, 0x6f])),
        }
    }
}

const fn shown(theme: Theme, of: SurfaceColor) -> Rgba {
    opaque(theme.choose(of.dark, of.light))
}

/// The sRGB color with the given lightness and hue (degrees), and at most the given chroma.
fn srgb(lightness: f64, chroma: f64, hue: f64) -> Rgba {
    let (sin, cos) = direction(hue);
    let linear = |chroma: f64| oklab_to_linear(lightness, chroma * cos, chroma * sin);
    let inside = |rgb: [f64; 3]| rgb.iter().all(|v| (-1e-6..=1.0 + 1e-6).contains(v));
    let (mut low, mut high) = (0.0, chroma);
    if inside(linear(chroma)) {
        low = chroma;
    } else {
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            if inside(linear(middle)) {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
    let [r, g, b] = linear(low).map(encode);
    [r, g, b, 255]
}

/// Sine and cosine of an angle in degrees, to seven digits.
///
/// Computed by their series, which need only a few terms for an eighth of a turn. The versions in
/// the standard library have tables that would add several kilobytes to the page's download.
fn direction(degrees: f64) -> (f64, f64) {
    let quarters = (degrees / 90.0).round();
    let x = (degrees - 90.0 * quarters).to_radians();
    let square = x * x;
    let sin = x
        * (1.0
            - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0))));
    let cos =
        1.0 - square / 2.0 * (1.0 - square / 12.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0)));
    match quarters.rem_euclid(4.0) as u8 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Converts `OKLab` to linear sRGB, with Björn Ottosson's matrices:
/// <https://bottosson.github.io/posts/oklab/>.
fn oklab_to_linear(l: f64, a: f64, b: f64) -> [f64; 3] {
    let cube = |v: f64| v * v * v;
    let long = cube(l + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let medium = cube(l - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let short = cube(l - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701_0 * short,
    ]
}

/// Encodes linear light as an sRGB byte.
fn encode(linear: f64) -> u8 {
    let v = linear.clamp(0.0, 1.0);
    let encoded = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
    (encoded * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::{HATCH_GAP, PALETTE_LEN, Palette, Rgba, Surfaces, Theme, direction, opaque, srgb};
    use crate::Color;
    use vramscope_units::color::label_on;

    /// Relative luminance (WCAG).
    fn luminance([r, g, b, _]: Rgba) -> f64 {
        let decode = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * decode(r) + 0.7152 * decode(g) + 0.0722 * decode(b)
    }

    fn contrast(a: Rgba, b: Rgba) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn direction_matches_sin_cos() {
        for tenth in -7200..7200 {
            let degrees = f64::from(tenth) / 10.0;
            let ((sin, cos), known) = (direction(degrees), degrees.to_radians().sin_cos());
            assert!(
                (sin - known.0).abs() < 1e-7 && (cos - known.1).abs() < 1e-7,
                "{degrees}: {sin} {cos}"
            );
        }
    }

    #[test]
    fn srgb_converts_known_colors() {
        // From CSS Color 4: OKLCH of white, and of sRGB red (0.62796, 0.25768, 29.234).
        assert_eq!(srgb(1.0, 0.0, 0.0), [255, 255, 255, 255]);
        assert_eq!(srgb(0.627_955, 0.257_68, 29.2339), [255, 0, 0, 255]);
    }

    #[test]
    fn block_colors_contrast_with_the_background() {
        for (theme, minimum) in [(Theme::Dark, 3.0), (Theme::Light, 1.7)] {
            let palette = Palette::new(theme);
            assert_eq!(palette.entries().len(), PALETTE_LEN);
            let quiet = [Color::DIMMED, Color::SEGMENT, Color::OTHER, Color::CASING]
                .map(|color| palette.rgba(color));
            let blocks =
                palette.entries().iter().enumerate().filter(|(_, entry)| !quiet.contains(entry));
            for (i, entry) in blocks {
                let seen = contrast(*entry, Surfaces::new(theme).ground);
                assert!(seen > minimum, "{theme:?} entry {i}: {seen}");
            }
        }
    }

    /// Hue in OKLCH, in degrees.
    fn hue([r, g, b, _]: Rgba) -> f64 {
        let decode = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        let [r, g, b] = [r, g, b].map(decode);
        let l = (0.412_221 * r + 0.536_333 * g + 0.051_446 * b).cbrt();
        let m = (0.211_903 * r + 0.680_700 * g + 0.107_397 * b).cbrt();
        let s = (0.088_302 * r + 0.281_719 * g + 0.629_979 * b).cbrt();
        let (a, b) = (
            1.977_998 * l - 2.428_592 * m + 0.450_594 * s,
            0.025_904 * l + 0.782_772 * m - 0.808_676 * s,
        );
        b.atan2(a).to_degrees().rem_euclid(360.0)
    }

    #[test]
    fn free_memory_stands_out_from_the_background() {
        for theme in [Theme::Dark, Theme::Light] {
            let ground = Surfaces::new(theme).ground;
            let stripe = Palette::new(theme).rgba(Color::SEGMENT);
            let gap: Rgba = std::array::from_fn(|i| {
                let part = f32::from(ground[i]) - f32::from(stripe[i]);
                (f32::from(stripe[i]) + part * HATCH_GAP) as u8
            });
            // The eye sees the mean of stripes and gaps from afar.
            let mean = f64::midpoint(luminance(stripe), luminance(gap));
            let (low, high) = (mean.min(luminance(ground)), mean.max(luminance(ground)));
            let seen = (high + 0.05) / (low + 0.05);
            assert!(seen >= 1.6, "{theme:?}: {seen}");
            let stripes = contrast(stripe, gap);
            assert!(stripes >= 1.25, "{theme:?}: stripes of {stripes}");
        }
    }

    #[test]
    fn gradients_and_the_capacity_have_different_hues() {
        for theme in [Theme::Dark, Theme::Light] {
            let gradient = hue(Palette::new(theme).rgba(Color::category(1)));
            let capacity = hue(Surfaces::new(theme).capacity);
            assert!((gradient - capacity).abs() >= 30.0, "{theme:?}: {gradient} {capacity}");
        }
    }

    #[test]
    fn mark_accent_and_capacity_are_readable() {
        for theme in [Theme::Dark, Theme::Light] {
            let s = Surfaces::new(theme);
            assert!(
                [s.mark, s.accent, s.capacity]
                    .iter()
                    .all(|color| contrast(*color, s.ground) >= 4.5)
            );
        }
    }

    #[test]
    fn labels_read_on_every_category_and_shade() {
        for theme in [Theme::Dark, Theme::Light] {
            let palette = Palette::new(theme);
            for category in 0..Color::CATEGORIES as u8 {
                for shade in 0..Color::SHADES {
                    let drawn = palette.drawn(Color::category(category).shaded(shade));
                    let read = contrast(opaque(label_on(drawn)), opaque(drawn));
                    assert!(read >= 4.5, "{theme:?} {category} shade {shade}: {read:.2}");
                }
            }
        }
    }

    #[test]
    fn ink_follows_the_share_of_hits() {
        let palette = Palette::new(Theme::Dark);
        let yellow = Color::category(4);
        assert_eq!(palette.ink(yellow), "#0a0d11");
        assert_eq!(palette.ink(Color::DIMMED), "#ffffff");
        assert_eq!(palette.ink(yellow.of_hits(1, 1000)), "#ffffff");
        assert_eq!(palette.ink(yellow.of_hits(900, 1000)), "#0a0d11");
    }

    #[test]
    fn steps_differ_and_words_map_to_their_entries() {
        let palette = Palette::new(Theme::Dark);
        for hue in [0, 60, 120, 200] {
            let steps: Vec<f64> =
                (0..4).map(|s| luminance(palette.rgba(Color::new(hue, s)))).collect();
            assert!(steps.windows(2).all(|w| w[0] + 0.01 < w[1]), "{steps:?}");
        }
        assert_eq!(palette.rgba(Color::new(3, 2)), palette.entries()[2 * 256 + 3]);
        assert_eq!(palette.rgba(Color::NO_STACK), palette.entries()[1279]);
        assert_ne!(palette.rgba(Color::category(0)), palette.rgba(Color::category(10)));
    }
}
