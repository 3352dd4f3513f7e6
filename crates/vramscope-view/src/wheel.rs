//! Interpretation of mouse wheel and trackpad events.

/// Pixels per line, for devices that report lines.
const LINE_PX: f64 = 33.0;
/// Pixels per page, for devices that report pages.
const PAGE_PX: f64 = 800.0;
/// Zoom per pixel, as natural logarithm of the factor. A notch of a mouse wheel (100 to 120 pixels)
/// zooms by a factor of about 1.25.
const ZOOM_PER_PX: f64 = 0.002;
/// Zoom per pixel while pinching. Browsers report a pinch as small wheel deltas with Ctrl.
const PINCH_ZOOM_PER_PX: f64 = 0.01;
/// Deltas with Ctrl of at least this many pixels come from a mouse wheel and not from a pinch.
const MIN_WHEEL_PX: f64 = 40.0;

/// The effect of a wheel event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WheelStep {
    /// Multiplies the number of visible slots, about the pointer.
    ZoomX(f64),
    /// Multiplies the number of visible bytes, about the pointer.
    ZoomY(f64),
    /// Pans to the right by CSS pixels.
    PanX(f64),
}

/// Interprets a wheel event. `dx`, `dy` and `mode` are its `deltaX`, `deltaY` and `deltaMode`.
pub(crate) fn step(dx: f64, dy: f64, mode: u32, shift: bool, ctrl: bool) -> Option<WheelStep> {
    let unit = match mode {
        1 => LINE_PX,
        2 => PAGE_PX,
        _ => 1.0,
    };
    let (dx, dy) = (dx * unit, dy * unit);
    if !(dx.is_finite() && dy.is_finite()) || (dx == 0.0 && dy == 0.0) {
        return None;
    }
    if ctrl {
        let rate = if dy.abs() < MIN_WHEEL_PX { PINCH_ZOOM_PER_PX } else { ZOOM_PER_PX };
        return Some(WheelStep::ZoomX((dy * rate).exp()));
    }
    if shift {
        // Some browsers report a horizontal delta while Shift is held.
        let turn = if dy == 0.0 { dx } else { dy };
        return Some(WheelStep::ZoomY((turn * ZOOM_PER_PX).exp()));
    }
    Some(if dx.abs() > dy.abs() {
        WheelStep::PanX(dx)
    } else {
        WheelStep::ZoomX((dy * ZOOM_PER_PX).exp())
    })
}

#[cfg(test)]
mod tests {
    use super::{WheelStep, step};

    fn factor(step: Option<WheelStep>) -> f64 {
        match step {
            Some(WheelStep::ZoomX(f) | WheelStep::ZoomY(f)) => f,
            other => panic!("{other:?} is not a zoom"),
        }
    }

    #[test]
    fn a_notch_zooms_equally_in_pixels_and_lines() {
        let pixels = factor(step(0.0, 100.0, 0, false, false));
        let lines = factor(step(0.0, 3.0, 1, false, false));
        assert!((1.15..1.3).contains(&pixels) && (pixels - lines).abs() < 0.01);
        assert!((pixels * factor(step(0.0, -100.0, 0, false, false)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shift_zooms_y_also_with_a_horizontal_delta() {
        assert_eq!(step(0.0, 100.0, 0, true, false), step(100.0, 0.0, 0, true, false));
        assert!(matches!(step(0.0, 100.0, 0, true, false), Some(WheelStep::ZoomY(_))));
    }

    #[test]
    fn horizontal_deltas_pan_and_pinching_zooms() {
        assert_eq!(step(30.0, 4.0, 0, false, false), Some(WheelStep::PanX(30.0)));
        assert!(factor(step(0.0, -10.0, 0, false, true)) < 0.95);
        assert!(factor(step(0.0, 120.0, 0, false, true)) < 1.5);
        assert_eq!(step(0.0, 0.0, 0, false, false), None);
        assert_eq!(step(f64::NAN, 1.0, 0, false, false), None);
    }
}
