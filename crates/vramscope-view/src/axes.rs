//! Labels: where they stand in CSS pixels, and what they say.

use serde::Serialize;
use vramscope_render::PixelRect;
use vramscope_units::{Bytes, Micros, Tick, byte_ticks, event_ticks, grouped, time_ticks};

use crate::screen::{CssRect, Screen};
use crate::tile::{Area, Axis, AxisKind};
use crate::viewport::Bounds;

/// CSS pixels for a label of the x axis with the space beside it, and of the y axis.
const X_ROOM: f64 = 110.0;
const Y_ROOM: f64 = 48.0;
/// A digit of an 11 px label, a little generously; labels are laid out before they are measured.
const DIGIT: f64 = 6.8;
/// The peak's label: its height, and the room around its text.
const PEAK_HEIGHT: f64 = 20.0;
const PEAK_PADDING: f64 = 14.0;
/// Between the peak's mark and its label.
const PEAK_GAP: f64 = 8.0;

/// A label of an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// CSS pixels in the canvas: from the left, or from the top.
    pub pos: f64,
    /// What it says.
    pub text: String,
}

/// The peak's label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeakLabel {
    /// The label's upper left corner, in CSS pixels of the canvas.
    pub x: f64,
    /// The same.
    pub y: f64,
    /// `peak 42.48 GiB`.
    pub text: String,
}

/// All that is written around a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Labels {
    /// Below the plot.
    pub x: Vec<Label>,
    /// Left of the plot.
    pub y: Vec<Label>,
    /// In the plot; null when the peak is not in view.
    pub peak: Option<PeakLabel>,
    /// Where the plot is.
    pub plot: CssRect,
}

/// The labels of a view. Rows and weights have no scale that means anything.
pub fn labels(screen: &Screen, view: &Area, axis: &Axis, bounds: &Bounds) -> Labels {
    let y = if bounds.rows.is_some() { Vec::new() } else { y_ticks(screen, view) };
    Labels {
        x: x_labels(screen, view, axis),
        y: (y.into_iter())
            .map(|tick| Label { pos: screen.css_y(screen.y_of(view, tick.value)), text: tick.text })
            .collect(),
        peak: peak_label(screen, view, axis, bounds.peak),
        plot: screen.plot_css(),
    }
}

fn x_labels(screen: &Screen, view: &Area, axis: &Axis) -> Vec<Label> {
    let most = (screen.plot_css().width / X_ROOM).max(1.0) as usize;
    let (lo, hi) = (view.x0 - axis.origin, view.x1 - axis.origin);
    let ticks = match axis.kind {
        // The slot before event 0 is the state before the window: no event, no number.
        AxisKind::Event => event_ticks(lo.max(0.0), hi.min(axis.extent - axis.origin - 1.0), most),
        AxisKind::Time => time_ticks(lo.max(-axis.origin), hi.min(axis.extent - axis.origin), most),
        AxisKind::Weight => Vec::new(),
    };
    let labels = ticks.into_iter().map(|Tick { value, text }| Label {
        pos: screen.css_x(screen.x_of(view, value + axis.origin)),
        text,
    });
    // Labels are centerd: the last may have no room.
    labels
        .filter(|label| {
            label.pos + label.text.chars().count() as f64 * DIGIT / 2.0 <= screen.css[0]
        })
        .collect()
}

fn y_ticks(screen: &Screen, view: &Area) -> Vec<Tick> {
    byte_ticks(view.y0, view.y1, (screen.plot_css().height / Y_ROOM).max(1.0) as usize)
}

/// The device pixel of the peak: the middle of its slot and its height, when both are in view.
pub fn peak_pixel(screen: &Screen, view: &Area, axis: &Axis, peak: f64) -> Option<[f64; 2]> {
    let slot = axis.peak + 0.5;
    let seen = (view.x0..=view.x1).contains(&slot) && (view.y0..=view.y1).contains(&peak);
    (seen && peak > 0.0).then(|| [screen.x_of(view, slot), screen.y_of(view, peak)])
}

/// A length along x in words: `412 events`, `7.90 ms`; nothing for a weight.
pub fn measure_x(kind: AxisKind, slots: f64) -> String {
    let slots = slots.abs().round();
    match kind {
        AxisKind::Event => {
            format!("{} {}", grouped(slots as u64), if slots == 1.0 { "event" } else { "events" })
        }
        AxisKind::Time => Micros(slots as i64).to_string(),
        AxisKind::Weight => String::new(),
    }
}

/// A length along y in words: `412.0 MiB`; nothing for rows.
pub fn measure_y(bounds: &Bounds, bytes: f64) -> String {
    if bounds.rows.is_some() {
        String::new()
    } else {
        Bytes(bytes.abs().round() as u64).to_string()
    }
}

fn peak_label(screen: &Screen, view: &Area, axis: &Axis, peak: f64) -> Option<PeakLabel> {
    let [x, y] = peak_pixel(screen, view, axis, peak)?;
    let text = format!("peak {}", Bytes(peak as u64));
    let width = text.chars().count() as f64 * DIGIT + PEAK_PADDING;
    let plot = screen.plot_css();
    let (x, y) = (screen.css_x(x), screen.css_y(y));
    let right = plot.left + plot.width;
    // To the right of the mark, or to the left where there is no room; above the peak's line, or
    // else below it.
    let left = if x + PEAK_GAP + width <= right { x + PEAK_GAP } else { x - PEAK_GAP - width };
    let above = y - PEAK_GAP / 2.0 - PEAK_HEIGHT;
    let top = if above >= plot.top { above } else { y + PEAK_GAP / 2.0 };
    Some(PeakLabel {
        x: left.min(right - width).max(plot.left),
        y: top.min(plot.top + plot.height - PEAK_HEIGHT).max(plot.top),
        text,
    })
}

/// The device pixels of the grid lines, kept until the heights in view change: ticks are made with
/// their texts, which a frame that only pans along x need not do again.
#[derive(Debug, Default)]
pub struct GridLines {
    of: Option<(PixelRect, f64, f64)>,
    pixels: Vec<f32>,
}

impl GridLines {
    /// From the bottom, in device pixels; none at 0, where the baseline is.
    pub fn of(&mut self, screen: &Screen, view: &Area) -> &[f32] {
        let of = (screen.plot, view.y0, view.y1);
        if self.of != Some(of) {
            self.of = Some(of);
            self.pixels.clear();
            let ticks = y_ticks(screen, view).into_iter().filter(|tick| tick.value > 0.0);
            self.pixels.extend(ticks.map(|tick| screen.y_of(view, tick.value).round() as f32));
        }
        &self.pixels
    }
}

#[cfg(test)]
mod tests {
    use super::{GridLines, labels, measure_x, measure_y};
    use crate::screen::Screen;
    use crate::tile::{Area, Axis, AxisKind, PlotKind, Rows};
    use crate::viewport::Bounds;

    const GIB: f64 = 1_073_741_824.0;
    const EVENTS: Axis =
        Axis { kind: AxisKind::Event, extent: 38_001.0, origin: 1.0, peak: 16_466.0 };

    fn screen() -> Screen {
        Screen::new(900.0, 440.0, 1.0)
    }

    fn whole() -> (Bounds, Area) {
        let bounds = Bounds::bytes(EVENTS.extent, 42.48 * GIB);
        (bounds, bounds.fit())
    }

    #[test]
    fn events_count_from_the_origin() {
        let (bounds, view) = whole();
        let found = labels(&screen(), &view, &EVENTS, &bounds);
        let texts: Vec<&str> = found.x.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["#0", "#10,000", "#20,000", "#30,000"]);
        // Event 10,000 is slot 10,001.
        assert!((found.x[1].pos - (64.0 + 10_001.0 / 38_001.0 * 824.0)).abs() < 1e-9);
        let near = Area { x0: 0.0, x1: 3.0, ..view };
        let near = labels(&screen(), &near, &EVENTS, &bounds);
        assert_eq!(near.x.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["#0", "#1", "#2"]);
    }

    #[test]
    fn time_counts_from_the_window_and_may_be_before_it() {
        let axis =
            Axis { kind: AxisKind::Time, extent: 1_200_000.0, origin: 100_000.0, peak: 500_000.0 };
        let bounds = Bounds::bytes(axis.extent, GIB);
        let found = labels(&screen(), &bounds.fit(), &axis, &bounds);
        assert_eq!(found.x[0].text, "0.0 s");
        assert!((found.x[0].pos - (64.0 + 824.0 / 12.0)).abs() < 1e-9);
        let found =
            labels(&screen(), &Area { x0: 0.0, x1: 200_000.0, ..bounds.fit() }, &axis, &bounds);
        assert_eq!(found.x.first().map(|l| l.text.as_str()), Some("-100 ms"));
    }

    #[test]
    fn bytes_stand_at_their_heights() {
        let (bounds, view) = whole();
        let found = labels(&screen(), &view, &EVENTS, &bounds);
        let texts: Vec<&str> = found.y.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["0", "8 GiB", "16 GiB", "24 GiB", "32 GiB", "40 GiB"]);
        assert!((found.y[0].pos - 416.0).abs() < 1e-9, "0 is the plot's lower edge");
        let mut lines = GridLines::default();
        assert_eq!(lines.of(&screen(), &view).len(), 5);
    }

    #[test]
    fn rows_of_weights_have_no_labels() {
        let rows =
            PlotKind::Rows(Rows { units: 40_960.0, row_units: 4096.0, least: 20.0, most: 20.0 });
        let bounds = Bounds { plot: 400.0, ..Bounds::new(1e6, GIB, rows) };
        let axis = Axis { kind: AxisKind::Weight, extent: 1e6, origin: 0.0, peak: 0.0 };
        let found = labels(&screen(), &bounds.fit(), &axis, &bounds);
        assert!(found.x.is_empty() && found.y.is_empty() && found.peak.is_none());
        assert_eq!(
            (measure_x(axis.kind, 12.0), measure_y(&bounds, 12.0)),
            (String::new(), String::new())
        );
    }

    #[test]
    fn lengths_in_words() {
        let (bounds, _) = whole();
        assert_eq!(measure_x(AxisKind::Event, -1.2), "1 event");
        assert_eq!(measure_x(AxisKind::Event, 1411.6), "1,412 events");
        assert_eq!(measure_x(AxisKind::Time, 1200.0), "1.20 ms");
        assert_eq!(measure_y(&bounds, -412.0 * 1_048_576.0), "412.0 MiB");
        assert_eq!(
            [measure_x(AxisKind::Time, f64::NAN), measure_y(&bounds, f64::NAN)],
            ["0 µs", "0 B"]
        );
    }

    #[test]
    fn the_peaks_label_stays_in_the_plot() {
        let (bounds, view) = whole();
        for slot in [0.0, 100.0, 16_466.0, 37_000.0, 38_000.0] {
            for top in [view.y1, bounds.peak, bounds.peak * 4.0] {
                let axis = Axis { peak: slot, ..EVENTS };
                let found = labels(&screen(), &Area { y1: top, ..view }, &axis, &bounds);
                let Some(peak) = found.peak else { panic!("no label for slot {slot}") };
                assert_eq!(peak.text, "peak 42.48 GiB");
                assert!(peak.x >= 64.0 && peak.x <= 888.0 - 100.0, "{slot}: {}", peak.x);
                assert!(peak.y >= 8.0 && peak.y <= 416.0 - 20.0, "{slot}: {}", peak.y);
            }
        }
        let away = Area { x0: 0.0, x1: 100.0, ..view };
        assert_eq!(labels(&screen(), &away, &EVENTS, &bounds).peak, None);
    }
}
