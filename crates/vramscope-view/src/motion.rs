//! What moves on its own: jumps that ease, and keys that are held.

use crate::tile::Area;
use crate::viewport::Bounds;

/// Milliseconds of a jump.
const EASE_MS: f64 = 120.0;
/// Milliseconds that a key counts as held at least, so that a tap is a step.
const LEAST_PRESS_MS: f64 = 80.0;
/// Milliseconds in which the speed of held keys comes within 1/e of what it shall be.
const RAMP_MS: f64 = 45.0;
/// A frame that took longer than this counts as this long: after a hidden tab nothing leaps.
const LONGEST_FRAME_MS: f64 = 100.0;
/// Of held keys, a second: e-foldings of zoom, and views of panning.
const ZOOM_RATE: f64 = 2.0;
const PAN_RATE: f64 = 0.9;

/// A jump from one view to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ease {
    from: Area,
    to: Area,
    started: Option<f64>,
}

impl Ease {
    /// A jump that begins with the next frame.
    pub fn new(from: Area, to: Area) -> Self {
        Self { from, to, started: None }
    }

    /// Where it goes.
    pub fn target(&self) -> Area {
        self.to
    }

    /// Goes on along y only: x is given from elsewhere.
    pub fn keep_x(&mut self, x0: f64, x1: f64) {
        for view in [&mut self.from, &mut self.to] {
            (view.x0, view.x1) = (x0, x1);
        }
    }

    /// The view at a time, and whether the jump is over.
    pub fn at(&mut self, now: f64) -> (Area, bool) {
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

/// What a key does while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Fewer slots.
    ZoomIn,
    /// More slots.
    ZoomOut,
    /// Earlier.
    Left,
    /// Later.
    Right,
    /// Fewer bytes.
    YIn,
    /// More bytes.
    YOut,
    /// Higher.
    Up,
    /// Lower.
    Down,
}

impl Action {
    /// By its name in the page.
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

    /// Which of the four speeds it drives, and which way.
    fn drives(self) -> (usize, f64) {
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

/// From when to when a key counts as held.
#[derive(Clone, Copy, Debug)]
struct Press {
    since: f64,
    until: f64,
}

/// The keys that are held, and how fast the view goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldKeys {
    presses: [Option<Press>; 8],
    speeds: [f64; 4],
    last: Option<f64>,
}

impl HeldKeys {
    /// A key goes down or up. A key that repeats is down only once.
    pub fn set(&mut self, action: Action, down: bool, now: f64) {
        let press = &mut self.presses[action as usize];
        match (down, press.as_mut()) {
            (true, Some(held)) if held.until == f64::INFINITY => {}
            (true, _) => {
                *press = Some(Press { since: now, until: f64::INFINITY });
                // The time before the first key is not part of the movement.
                self.last.get_or_insert(now);
            }
            (false, Some(held)) => {
                held.until = held.until.min(now.max(held.since + LEAST_PRESS_MS))
            }
            (false, None) => {}
        }
    }

    /// No key is held, and nothing moves.
    pub fn release(&mut self) {
        *self = Self::default();
    }

    /// True while another frame would move the view.
    pub fn moving(&self) -> bool {
        self.last.is_some()
    }

    /// The view after the time since the last frame. `at` is the point that stays where it is when
    /// zooming; without `smooth` the speed is there at once.
    pub fn advance(
        &mut self,
        view: Area,
        at: [f64; 2],
        bounds: &Bounds,
        now: f64,
        smooth: bool,
    ) -> Area {
        let Some(last) = self.last else { return view };
        let passed = (now - last).clamp(0.0, LONGEST_FRAME_MS);
        if passed <= 0.0 {
            return view;
        }
        let mut wanted = [0.0; 4];
        let mut held = false;
        for action in Action::ALL {
            let Some(press) = self.presses[action as usize] else { continue };
            let overlap = press.until.min(now) - press.since.max(now - passed);
            let (speed, way) = action.drives();
            wanted[speed] += way * overlap.max(0.0) / passed;
            if press.until > now {
                held = true;
            } else {
                self.presses[action as usize] = None;
            }
        }
        let mut moved = [0.0; 4];
        let keep = if smooth { (-passed / RAMP_MS).exp() } else { 0.0 };
        for ((speed, wanted), moved) in self.speeds.iter_mut().zip(wanted).zip(&mut moved) {
            // The integral of a speed that comes exponentially near `wanted`.
            let ramp = if smooth { RAMP_MS * (*speed - wanted) * (1.0 - keep) } else { 0.0 };
            *moved = (wanted * passed + ramp) / 1000.0;
            *speed = wanted + (*speed - wanted) * keep;
        }
        let still = self.speeds.iter().all(|speed| speed.abs() < 0.01);
        self.last = if held || (smooth && !still) { Some(now) } else { None };
        if self.last.is_none() {
            self.speeds = [0.0; 4];
        }
        let view = bounds.zoom_x(view, at[0], (moved[ZOOM_X] * ZOOM_RATE).exp());
        let view = bounds.zoom_y(view, at[1], (moved[ZOOM_Y] * ZOOM_RATE).exp());
        bounds.pan(
            view,
            moved[PAN_X] * PAN_RATE * view.width(),
            moved[PAN_Y] * PAN_RATE * view.height(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Ease, HeldKeys, PAN_RATE, ZOOM_RATE};
    use crate::tile::Area;
    use crate::viewport::Bounds;

    const BOUNDS: Bounds = Bounds::bytes(1e6, 1e9);

    fn middle() -> Area {
        BOUNDS.clamp(Area { x0: 400_000.0, x1: 410_000.0, y0: 4e8, y1: 5e8 })
    }

    /// Holds keys for a while and lets them go; gives the view when all is still.
    fn hold(keys: &[Action], ms: f64, frame: f64, smooth: bool) -> Area {
        let mut held = HeldKeys::default();
        let mut view = middle();
        let at = [405_000.0, 4.5e8];
        for key in keys {
            held.set(*key, true, 0.0);
        }
        let mut now = 0.0;
        let mut released = false;
        while held.moving() {
            now += frame;
            if now >= ms && !released {
                released = true;
                for key in keys {
                    held.set(*key, false, ms);
                }
            }
            view = held.advance(view, at, &BOUNDS, now, smooth);
            assert!(now < 10_000.0, "never comes to rest");
        }
        view
    }

    #[test]
    fn a_jump_ends_where_it_should_and_goes_one_way() {
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
    fn the_way_depends_on_the_time_and_not_on_the_frames() {
        for smooth in [true, false] {
            let views: Vec<f64> = [4.0, 16.0, 33.0]
                .iter()
                .map(|frame| hold(&[Action::Right], 500.0, *frame, smooth).x0)
                .collect();
            let expected = 400_000.0 + 0.5 * PAN_RATE * 10_000.0;
            assert!(
                views.iter().all(|x| (x - expected).abs() < 60.0),
                "{views:?} and not {expected}"
            );
        }
    }

    #[test]
    fn zoom_is_about_the_point() {
        let view = hold(&[Action::ZoomIn], 1000.0, 16.0, true);
        assert!((view.width() / 10_000.0 - (-ZOOM_RATE).exp()).abs() < 0.01);
        assert!(((405_000.0 - view.x0) / view.width() - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_tap_between_two_frames_is_a_step() {
        let view = hold(&[Action::Left], 1.0, 16.0, true);
        let step = (400_000.0 - view.x0) / 10_000.0;
        assert!((0.05..0.1).contains(&step), "{step} of the view");
    }

    #[test]
    fn opposite_keys_cancel_and_release_stops() {
        assert_eq!(hold(&[Action::Up, Action::Down], 300.0, 16.0, true), middle());
        let mut held = HeldKeys::default();
        held.set(Action::YIn, true, 0.0);
        assert!(held.moving());
        held.release();
        assert!(!held.moving());
    }

    #[test]
    fn a_hidden_tab_does_not_leap() {
        let mut held = HeldKeys::default();
        held.set(Action::Right, true, 0.0);
        let view = held.advance(middle(), [0.0, 0.0], &BOUNDS, 60_000.0, false);
        assert!(view.x0 - 400_000.0 < 1000.0);
    }

    #[test]
    fn every_action_has_its_own_name() {
        for name in ["zoom-in", "zoom-out", "left", "right", "y-in", "y-out", "up", "down"] {
            assert!(Action::from_name(name).is_some());
        }
        assert_eq!(Action::from_name("sideways"), None);
    }
}
