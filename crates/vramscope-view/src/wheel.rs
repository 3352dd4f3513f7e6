//! What turning a wheel, or two fingers on a pad, means.

/// Pixels of a line and of a page, for devices that count in those.
const LINE: f64 = 33.0;
const PAGE: f64 = 800.0;
/// E-foldings a pixel: a notch of a mouse wheel (100 to 120 pixels) is a fifth to a quarter.
const RATE: f64 = 0.002;
/// The same while pinching, which browsers report as small turns with Ctrl.
const PINCH_RATE: f64 = 0.01;
/// Turns with Ctrl that are larger than this are a mouse wheel and no pinch.
const PINCH_MOST: f64 = 40.0;

/// One step of a wheel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// So many times as many slots, about the pointer.
    ZoomX(f64),
    /// So many times as many bytes, about the pointer.
    ZoomY(f64),
    /// To the right by CSS pixels.
    PanX(f64),
}

/// Reads a wheel event: `dx`, `dy` and `mode` are its `deltaX`, `deltaY` and `deltaMode`.
pub fn step(dx: f64, dy: f64, mode: u32, shift: bool, ctrl: bool) -> Option<Step> {
    let unit = match mode {
        1 => LINE,
        2 => PAGE,
        _ => 1.0,
    };
    let (dx, dy) = (dx * unit, dy * unit);
    if !(dx.is_finite() && dy.is_finite()) || (dx == 0.0 && dy == 0.0) {
        return None;
    }
    if ctrl {
        let rate = if dy.abs() < PINCH_MOST { PINCH_RATE } else { RATE };
        return Some(Step::ZoomX((dy * rate).exp()));
    }
    if shift {
        // Some browsers turn the wheel sideways when Shift is held.
        let turn = if dy == 0.0 { dx } else { dy };
        return Some(Step::ZoomY((turn * RATE).exp()));
    }
    Some(if dx.abs() > dy.abs() { Step::PanX(dx) } else { Step::ZoomX((dy * RATE).exp()) })
}

#[cfg(test)]
mod tests {
    use super::{Step, step};

    fn factor(step: Option<Step>) -> f64 {
        match step {
            Some(Step::ZoomX(f) | Step::ZoomY(f)) => f,
            other => panic!("{other:?} is no zoom"),
        }
    }

    #[test]
    fn a_notch_is_the_same_whatever_the_browser_counts_in() {
        let pixels = factor(step(0.0, 100.0, 0, false, false));
        let lines = factor(step(0.0, 3.0, 1, false, false));
        assert!((1.15..1.3).contains(&pixels) && (pixels - lines).abs() < 0.01);
        assert!((pixels * factor(step(0.0, -100.0, 0, false, false)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shift_zooms_y_also_where_it_turns_the_wheel_sideways() {
        assert_eq!(step(0.0, 100.0, 0, true, false), step(100.0, 0.0, 0, true, false));
        assert!(matches!(step(0.0, 100.0, 0, true, false), Some(Step::ZoomY(_))));
    }

    #[test]
    fn sideways_pans_and_pinching_zooms() {
        assert_eq!(step(30.0, 4.0, 0, false, false), Some(Step::PanX(30.0)));
        assert!(factor(step(0.0, -10.0, 0, false, true)) < 0.95);
        assert!(factor(step(0.0, 120.0, 0, false, true)) < 1.5);
        assert_eq!(step(0.0, 0.0, 0, false, false), None);
        assert_eq!(step(f64::NAN, 1.0, 0, false, false), None);
    }
}
