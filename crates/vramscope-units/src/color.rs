//! The colors of the product: categories of memory, surfaces and texts, in both themes.
//!
//! Page, plots, HTML report, notebook card and terminal take their colors from these tables. Hue is
//! data. Red, amber and green stand only beside an icon and a word. All pairs of categories stay
//! apart with red-green color blindness, which the tests compute.

/// An sRGB color: red, green, blue.
pub type Rgb = [u8; 3];

/// A category's colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CategoryColor {
    /// The category's name.
    pub name: &'static str,
    /// On dark surfaces.
    pub dark: Rgb,
    /// On light surfaces.
    pub light: Rgb,
    /// In a terminal, whose background is not known.
    pub terminal: Terminal,
}

/// One of the colors that every terminal defines for its own background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// Blue.
    Blue,
    /// Cyan.
    Cyan,
    /// Green.
    Green,
    /// Magenta.
    Magenta,
    /// Red.
    Red,
    /// Yellow.
    Yellow,
    /// The color of text.
    Plain,
}

/// A color of the page that shows no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceColor {
    /// The name of its CSS variable, without dashes.
    pub name: &'static str,
    /// In the dark theme.
    pub dark: Rgb,
    /// In the light theme.
    pub light: Rgb,
}

/// `0x5a8ffe` as red, green, blue.
const fn rgb(hex: u32) -> Rgb {
    let [_, r, g, b] = hex.to_be_bytes();
    [r, g, b]
}

const fn category(name: &'static str, dark: u32, light: u32, terminal: Terminal) -> CategoryColor {
    CategoryColor { name, dark: rgb(dark), light: rgb(light), terminal }
}

const fn surface(name: &'static str, dark: u32, light: u32) -> SurfaceColor {
    SurfaceColor { name, dark: rgb(dark), light: rgb(light) }
}

/// The categories, in their fixed order.
pub const CATEGORIES: [CategoryColor; 11] = [
    category("parameter", 0x5a_8ffe, 0x32_67c6, Terminal::Blue),
    category("gradient", 0xd7_a135, 0xba_851a, Terminal::Yellow),
    category("optimizer_state", 0x34_a58a, 0x2a_a07f, Terminal::Green),
    category("buffer", 0x90_aec3, 0x75_8792, Terminal::Blue),
    category("input", 0xec_e78e, 0x79_7211, Terminal::Yellow),
    category("activation", 0xb4_6fc6, 0xb5_74d0, Terminal::Magenta),
    category("temporary", 0x92_6142, 0x77_4e3c, Terminal::Plain),
    category("workspace", 0x84_dce8, 0x25_83a3, Terminal::Cyan),
    category("communication", 0xe2_695b, 0xce_554c, Terminal::Red),
    category("cache", 0x9d_c576, 0x35_5c00, Terminal::Cyan),
    category("unknown", 0x6b_6f78, 0x75_7275, Terminal::Plain),
];

/// Grounds, lines, texts and states. `plot` is the ground of canvases.
pub const SURFACES: [SurfaceColor; 13] = [
    surface("bg", 0x10_1318, 0xf6_f7f9),
    surface("panel", 0x15_191f, 0xff_ffff),
    surface("raise", 0x1d_222a, 0xec_eff3),
    surface("plot", 0x0c_0f13, 0xff_ffff),
    surface("line", 0x27_2d36, 0xe0_e4e9),
    surface("line2", 0x3a_434f, 0xc3_cad3),
    surface("text", 0xe7_ebf0, 0x14_181d),
    surface("dim", 0xa3_adb9, 0x52_5c68),
    surface("faint", 0x83_8e9b, 0x60_6a76),
    surface("accent", 0x6c_b0ff, 0x0a_60c6),
    surface("danger", 0xff_837b, 0xbe_261d),
    surface("warn", 0xef_b455, 0x8a_5700),
    surface("good", 0x5c_c798, 0x0f_7447),
];

/// The texts on categories. The one that reads better is used.
const LABELS: [Rgb; 2] = [rgb(0xff_ffff), rgb(0x0a_0d11)];

/// The surface of this name.
///
/// # Panics
/// No surface has the name, which fails to compile in a constant.
pub const fn surface_of(name: &str) -> SurfaceColor {
    let mut i = 0;
    while i < SURFACES.len() {
        if is_equal(SURFACES[i].name, name) {
            return SURFACES[i];
        }
        i += 1;
    }
    panic!("no surface has this name")
}

const fn is_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// `#5a8ffe`.
pub fn css([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The text that reads best on a color: white, or nearly black.
pub fn label_on(color: Rgb) -> Rgb {
    let [light, dark] = LABELS;
    if contrast(light, color) >= contrast(dark, color) { light } else { dark }
}

/// The contrast of two colors, from 1 to 21 (WCAG).
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Relative luminance (WCAG).
fn luminance(color: Rgb) -> f64 {
    let [r, g, b] = color.map(linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Linear light of an sRGB byte.
fn linear(byte: u8) -> f64 {
    let v = f64::from(byte) / 255.0;
    if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
}

/// The colors of categories as CSS variables: `--parameter: VALUE;`. `value` writes a color of the
/// light and of the dark theme.
pub fn category_variables(value: impl Fn(Rgb, Rgb) -> String) -> String {
    let line = |of: &CategoryColor| format!("--{}: {};", of.name, value(of.light, of.dark));
    CATEGORIES.iter().map(line).collect::<Vec<_>>().join("\n  ")
}

/// `light-dark(#3267c6, #5a8ffe)`: the color that fits the color scheme of an element.
pub fn light_dark(light: Rgb, dark: Rgb) -> String {
    format!("light-dark({}, {})", css(light), css(dark))
}

#[cfg(test)]
mod tests;
