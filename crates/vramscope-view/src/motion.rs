//! Animation: eased jumps, and movement by held keys.

use crate::tile::Area;
use crate::viewport::Bounds;

/// Duration of a jump in milliseconds.
const EASE_MS: f64 = 120.0;
/// Minimum milliseconds for which a key counts as held, so that a tap is a visible step.
const MIN_PRESS_MS: f64 = 80.0;
/// Time constant of the acceleration by held keys, in milliseconds: the time in which the
/// difference from the target speed falls to 1/e.
const RAMP_MS: f64 = 45.0;
/// Maximum duration of a frame in milliseconds. Longer frames count as this long, so that the view
/// does not leap after the tab was hidden.
const MAX_FRAME_MS: f64 = 100.0;
/// Zoom by a held key per second, as natural logarithm of the factor.
const ZOOM_PER_SECOND: f64 = 2.0;
/// Panning by a held key per second, as a share of the view.
const PAN_PER_SECOND: f64 = 0.9;

/// A jump from one view to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ease {
    from: Area,
    to: Area,
    started: Option<f64>,
}

impl Ease {
    /// A jump that starts with the next frame.
    pub(crate) fn new(from: Area, to: Area) -> Self {
        Self { from, to, started: None }
    }

    /// The view at the end of the jump.
    pub(crate) fn target(&self) -> Area {
        self.to
    }

    /// Fixes the slots in view. The jump continues along y only.
    pub(crate) fn fix_x(&mut self, x0: f64, x1: f64) {
        for view in [&mut self.from, &mut self.to] {
            (view.x0, view.x1) = (x0, x1);
        }
    }

    /// The view at the time `now` in milliseconds, and whether the jump is over.
    pub(crate) fn at(&mut self, now: f64) -> (Area, bool) {
        let started = *self.started.get_or_insert(now);
        let t = ((now - started) / EASE_MS).clamp(0.0, 1.0);
        if t >= 1.0 {
            return (self.to, true);
        }
        let eased = 1.0 - (1.0 - t).powi(3);
        let mix = |a: f64, b: f64| a + (b - a) * eased;
        let (a, b) = (self.from, self.to);
        let view = Area {
            x0: mix(a.x0, b.x0),
            x1: mix(a.x1, b.x1),
            y0: mix(a.y0, b.y0),
            y1: mix(a.y1, b.y1),
        };
        (view, false)
    }
}

/// The action of a held key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Show fewer slots.
    ZoomIn,
    /// Show more slots.
    ZoomOut,
    /// Pan to earlier slots.
    Left,
    /// Pan to later slots.
    Right,
    /// Show fewer bytes.
    YIn,
    /// Show more bytes.
    YOut,
    /// Pan up.
    Up,
    /// Pan down.
    Down,
}

impl Action {
    /// Parses the name that the page uses.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "zoom-in" => Self::ZoomIn,
            "zoom-out" => Self::ZoomOut,
            "left" => Self::Left,
            "right" => Self::Right,
            "y-in" => Self::YIn,
            "y-out" => Self::YOut,
            "up" => Self::Up,
            "down" => Self::Down,
            _ => return None,
        })
    }

    /// Index of the speed that the action drives, and its sign.
    fn speed_and_sign(self) -> (usize, f64) {
        match self {
            Self::ZoomIn => (ZOOM_X, -1.0),
            Self::ZoomOut => (ZOOM_X, 1.0),
            Self::Left => (PAN_X, -1.0),
            Self::Right => (PAN_X, 1.0),
            Self::YIn => (ZOOM_Y, -1.0),
            Self::YOut => (ZOOM_Y, 1.0),
            Self::Up => (PAN_Y, 1.0),
            Self::Down => (PAN_Y, -1.0),
        }
    }

    const ALL: [Self; 8] = [
        Self::ZoomIn,
        Self::ZoomOut,
        Self::Left,
        Self::Right,
        Self::YIn,
        Self::YOut,
        Self::Up,
        Self::Down,
    ];
}

const ZOOM_X: usize = 0;
const PAN_X: usize = 1;
const ZOOM_Y: usize = 2;
const PAN_Y: usize = 3;

/// The time for which a key counts as held, in milliseconds. `until` is infinite while the key is
/// down.
#[derive(Clone, Copy, Debug)]
struct Press {
    since: f64,
    until: f64,
}

/// The held keys, and the speed of the view.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldKeys {
    presses: [Option<Press>; 8],
    speeds: [f64; 4],
    last: Option<f64>,
}

impl HeldKeys {
    /// Handles a key that goes down or up. Repeats of a held key are ignored.
    pub(crate) fn set(&mut self, action: Action, down: bool, now: f64) {
        let press = &mut self.presses[action as usize];
        match (down, press.as_mut()) {
            (true, Some(held)) if held.until == f64::INFINITY => {}
            (true, _) => {
                *press = Some(Press { since: now, until: f64::INFINITY });
                // The movement starts with the first key.
                self.last.get_or_insert(now);
            }
            (false, Some(held)) => held.until = held.until.min(now.max(held.since + MIN_PRESS_MS)),
            (false, None) => {}
        }
    }

    /// Releases all keys and stops the movement.
    pub(crate) fn release(&mut self) {
        *self = Self::default();
    }

    /// True while the view moves.
    pub(crate) fn is_moving(&self) -> bool {
        self.last.is_some()
    }

    /// The view after the time since the last frame. Zooming keeps the point `at` in place. Without
    /// `smooth` the speed changes immediately.
    pub(crate) fn advance(
        &mut self,
        view: Area,
        at: [f64; 2],
        bounds: &Bounds,
        now: f64,
        smooth: bool,
    ) -> Area {
        let Some(last) = self.last else { return view };
        let passed = (now - last).clamp(0.0, MAX_FRAME_MS);
        if passed <= 0.0 {
            return view;
        }
        let mut wanted = [0.0; 4];
        let mut held = false;
        for action in Action::ALL {
            let Some(press) = self.presses[action as usize] else { continue };
            let overlap = press.until.min(now) - press.since.max(now - passed);
            let (speed, sign) = action.speed_and_sign();
            wanted[speed] += sign * overlap.max(0.0) / passed;
            if press.until > now {
                held = true;
            } else {
                self.presses[action as usize] = None;
            }
        }
        let mut moved = [0.0; 4];
        let keep = if smooth { (-passed / RAMP_MS).exp() } else { 0.0 };
        for ((speed, wanted), moved) in self.speeds.iter_mut().zip(wanted).zip(&mut moved) {
            // The integral of a speed that approaches `wanted` exponentially.
            let ramp = if smooth { RAMP_MS * (*speed - wanted) * (1.0 - keep) } else { 0.0 };
            *moved = (wanted * passed + ramp) / 1000.0;
            *speed = wanted + (*speed - wanted) * keep;
        }
        let still = self.speeds.iter().all(|speed| speed.abs() < 0.01);
        self.last = if held || (smooth && !still) { Some(now) } else { None };
        if self.last.is_none() {
            self.speeds = [0.0; 4];
        }
        let view = bounds.zoom_x(view, at[0], (moved[ZOOM_X] * ZOOM_PER_SECOND).exp());
        let view = bounds.zoom_y(view, at[1], (moved[ZOOM_Y] * ZOOM_PER_SECOND).exp());
        bounds.pan(
            view,
            moved[PAN_X] * PAN_PER_SECOND * view.width(),
            moved[PAN_Y] * PAN_PER_SECOND * view.height(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Ease, HeldKeys, PAN_PER_SECOND, ZOOM_PER_SECOND};
    use crate::tile::Area;
    use crate::viewport::Bounds;

    const BOUNDS: Bounds = Bounds::bytes(1e6, 1e9);

    fn middle() -> Area {
        BOUNDS.clamp(Area { x0: 400_000.0, x1: 410_000.0, y0: 4e8, y1: 5e8 })
    }

    /// Holds keys for `ms` milliseconds and releases them. Returns the view when it is at rest.
    fn hold(keys: &[Action], ms: f64, frame: f64, smooth: bool) -> Area {
        let mut held = HeldKeys::default();
        let mut view = middle();
        let at = [405_000.0, 4.5e8];
        for key in keys {
            held.set(*key, true, 0.0);
        }
        let mut now = 0.0;
        let mut released = false;
        while held.is_moving() {
            now += frame;
            if now >= ms && !released {
                released = true;
                for key in keys {
                    held.set(*key, false, ms);
                }
            }
            view = held.advance(view, at, &BOUNDS, now, smooth);
            assert!(now < 10_000.0, "the view does not come to rest");
        }
        view
    }

    #[test]
    fn jumps_are_monotonic_and_end_at_the_target() {
        let to = BOUNDS.fit();
        let mut ease = Ease::new(middle(), to);
        let mut last = middle().width();
        for step in 0..12 {
            let (view, over) = ease.at(1000.0 + f64::from(step) * 10.0);
            assert!(view.width() >= last && !over);
            last = view.width();
        }
        assert_eq!(ease.at(1120.0), (to, true));
    }

    #[test]
    fn key_movement_does_not_depend_on_the_frame_rate() {
        for smooth in [true, false] {
            let views: Vec<f64> = [4.0, 16.0, 33.0]
                .iter()
                .map(|frame| hold(&[Action::Right], 500.0, *frame, smooth).x0)
                .collect();
            let expected = 400_000.0 + 0.5 * PAN_PER_SECOND * 10_000.0;
            assert!(
                views.iter().all(|x| (x - expected).abs() < 60.0),
                "{views:?}, expected {expected}"
            );
        }
    }

    #[test]
    fn key_zoom_keeps_the_point() {
        let view = hold(&[Action::ZoomIn], 1000.0, 16.0, true);
        assert!((view.width() / 10_000.0 - (-ZOOM_PER_SECOND).exp()).abs() < 0.01);
        assert!(((405_000.0 - view.x0) / view.width() - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_tap_between_two_frames_moves_the_view() {
        let view = hold(&[Action::Left], 1.0, 16.0, true);
        let step = (400_000.0 - view.x0) / 10_000.0;
        assert!((0.05..0.1).contains(&step), "{step} of the view");
    }

    #[test]
    fn opposite_keys_cancel_and_release_stops_movement() {
        assert_eq!(hold(&[Action::Up, Action::Down], 300.0, 16.0, true), middle());
        let mut held = HeldKeys::default();
        held.set(Action::YIn, true, 0.0);
        assert!(held.is_moving());
        held.release();
        assert!(!held.is_moving());
    }

    #[test]
    fn long_frames_do_not_make_the_view_leap() {
        let mut held = HeldKeys::default();
        held.set(Action::Right, true, 0.0);
        let view = held.advance(middle(), [0.0, 0.0], &BOUNDS, 60_000.0, false);
        assert!(view.x0 - 400_000.0 < 1000.0);
    }

    #[test]
    fn from_name_knows_all_actions() {
        for name in ["zoom-in", "zoom-out", "left", "right", "y-in", "y-out", "up", "down"] {
            assert!(Action::from_name(name).is_some());
        }
        assert_eq!(Action::from_name("sideways"), None);
    }
}
