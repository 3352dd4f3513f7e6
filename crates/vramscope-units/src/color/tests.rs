//! Distances of colors by CIEDE2000, as people with and without red-green blindness see them.

use super::{CATEGORIES, CategoryColor, Rgb, SURFACES, contrast, label_on, linear, surface_of};

type Vec3 = [f64; 3];
type Matrix = [Vec3; 3];

/// The least distance of two categories. Neighbors in a stack with less look alike.
const MIN_DISTANCE: f64 = 8.0;

/// Kinds of sight as matrices of linear sRGB.
const SIGHTS: [(&str, Matrix); 5] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    // Machado, Oliveira, Fernandes 2009, severity 1.
    (
        "protanopia, Machado",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia, Machado",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    // Viénot, Brettel, Mollon 1999, for sRGB.
    (
        "protanopia, Viénot",
        [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]],
    ),
    (
        "deuteranopia, Viénot",
        [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]],
    ),
];

fn times(matrix: &Matrix, v: Vec3) -> Vec3 {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

/// CIE L*a*b* of linear sRGB, for D65.
fn lab(linear: Vec3) -> Vec3 {
    const XYZ: Matrix = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175_0],
        [0.019_333_9, 0.119_192_0, 0.950_304_1],
    ];
    let f =
        |t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
    let [x, y, z] = times(&XYZ, linear.map(|v| v.clamp(0.0, 1.0)));
    let [x, y, z] = [f(x / 0.950_47), f(y), f(z / 1.088_83)];
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// CIEDE2000 (Sharma, Wu, Dalal 2005).
fn distance(one: Vec3, other: Vec3) -> f64 {
    let c_mean = f64::midpoint(one[1].hypot(one[2]), other[1].hypot(other[2]));
    let g = 0.5 * (1.0 - (c_mean.powi(7) / (c_mean.powi(7) + 25f64.powi(7))).sqrt());
    let polar = |[_, a, b]: Vec3| {
        let a = a * (1.0 + g);
        (
            a.hypot(b),
            if a == 0.0 && b == 0.0 { 0.0 } else { b.atan2(a).to_degrees().rem_euclid(360.0) },
        )
    };
    let ((c1, h1), (c2, h2)) = (polar(one), polar(other));
    let is_gray = c1 * c2 == 0.0;
    let turn = match h2 - h1 {
        _ if is_gray => 0.0,
        d if d > 180.0 => d - 360.0,
        d if d < -180.0 => d + 360.0,
        d => d,
    };
    let (dl, dc) = (other[0] - one[0], c2 - c1);
    let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin();
    let (l, c) = (f64::midpoint(one[0], other[0]), f64::midpoint(c1, c2));
    let h = match h1 + h2 {
        sum if is_gray => sum,
        sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
        sum if sum < 360.0 => f64::midpoint(sum, 360.0),
        sum => (sum - 360.0) / 2.0,
    };
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
        - 0.20 * cos(4.0 * h - 63.0);
    let far = (l - 50.0).powi(2);
    let (sl, sc, sh) =
        (1.0 + 0.015 * far / (20.0 + far).sqrt(), 1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let rotation = -2.0
        * (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt()
        * (60.0 * (-((h - 275.0) / 25.0).powi(2)).exp()).to_radians().sin();
    let (dl, dc, dh) = (dl / sl, dc / sc, dh / sh);
    (dl * dl + dc * dc + dh * dh + rotation * dc * dh).sqrt()
}

fn seen(color: Rgb, sight: &Matrix) -> Vec3 {
    lab(times(sight, color.map(linear)))
}

#[test]
fn distance_matches_published_pairs() {
    // From the test data of Sharma, Wu and Dalal 2005.
    for (one, other, known) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, -1.3802, -84.2814], [50.0, 0.0, -82.7485], 1.0000),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([50.0, 2.5, 0.0], [58.0, 24.0, 15.0], 19.4535),
        ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
        ([22.7233, 20.0904, -46.6940], [23.0331, 14.9730, -42.5619], 2.0373),
        ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
    ] {
        assert!((distance(one, other) - known).abs() < 5e-5, "{one:?} {other:?}");
    }
}

#[test]
fn all_pairs_of_categories_are_apart_with_and_without_color_blindness() {
    for (sight, matrix) in &SIGHTS {
        for is_dark in [true, false] {
            let of =
                |category: &CategoryColor| if is_dark { category.dark } else { category.light };
            let mut pairs = 0;
            for (i, one) in CATEGORIES.iter().enumerate() {
                for other in &CATEGORIES[..i] {
                    let apart = distance(seen(of(one), matrix), seen(of(other), matrix));
                    let names = (one.name, other.name);
                    assert!(apart >= MIN_DISTANCE, "{sight} dark {is_dark}: {names:?} {apart:.1}");
                    pairs += 1;
                }
            }
            assert_eq!(pairs, 55);
        }
    }
}

#[test]
fn categories_contrast_with_every_ground_and_labels_read_on_them() {
    // Only texts and controls stand on raised surfaces.
    for ground in ["bg", "panel", "plot"].map(surface_of) {
        for of in CATEGORIES {
            for (color, ground) in [(of.dark, ground.dark), (of.light, ground.light)] {
                let shown = contrast(color, ground);
                assert!(shown >= 3.0, "{} on {ground:?}: {shown:.2}", of.name);
            }
        }
    }
    for color in CATEGORIES.iter().flat_map(|of| [of.dark, of.light]) {
        let read = contrast(label_on(color), color);
        assert!(read >= 4.5, "{color:?}: {read:.2}");
    }
}

#[test]
fn texts_read_on_every_ground() {
    let texts = ["text", "dim", "faint", "accent", "danger", "warn", "good"].map(surface_of);
    for ground in ["bg", "panel", "raise", "plot"].map(surface_of) {
        for text in texts {
            let read = contrast(text.dark, ground.dark).min(contrast(text.light, ground.light));
            assert!(read >= 4.5, "{} on {}: {read:.2}", text.name, ground.name);
        }
    }
    assert_eq!(SURFACES.len(), 4 + 2 + texts.len());
}
