//! Labels and grid lines: their texts, and their positions in CSS pixels.

use serde::Serialize;
use vramscope_render::PixelRect;
use vramscope_units::{
    Bytes, Micros, Tick, TimeBreak, broken_time_ticks, byte_ticks, event_ticks, grouped, time_at,
};

use crate::screen::{CssRect, Screen};
use crate::tile::{Area, Axis, AxisKind};
use crate::viewport::Bounds;

/// Minimum distance between labels of the x axis, in CSS pixels.
const X_SPACING: f64 = 110.0;
/// Minimum distance between labels of the y axis, in CSS pixels.
const Y_SPACING: f64 = 48.0;
/// Estimated width of a character of an 11 px label, in CSS pixels. It is a bit too large. Labels
/// are placed before they are measured.
const CHARACTER_WIDTH: f64 = 6.8;
/// Height of the peak's label in CSS pixels.
const PEAK_HEIGHT: f64 = 20.0;
/// Horizontal padding of the peak's label in CSS pixels, both sides together.
const PEAK_PADDING: f64 = 14.0;
/// Distance between the peak's mark and its label in CSS pixels.
const PEAK_GAP: f64 = 8.0;

/// A label of an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// Position in CSS pixels of the canvas: from the left on the x axis, from the top on the y
    /// axis.
    pub pos: f64,
    /// Text.
    pub text: String,
}

/// The peak's label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeakLabel {
    /// Left edge of the label in CSS pixels of the canvas.
    pub x: f64,
    /// Upper edge of the label in CSS pixels of the canvas.
    pub y: f64,
    /// Text, such as `peak 42.48 GiB`.
    pub text: String,
}

/// All labels of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Labels {
    /// Labels of the x axis, below the plot.
    pub x: Vec<Label>,
    /// Labels of the y axis, left of the plot.
    pub y: Vec<Label>,
    /// Label of the peak, inside the plot. Null when the peak is not in view.
    pub peak: Option<PeakLabel>,
    /// Position of the plot.
    pub plot: CssRect,
}

/// The labels of a view. Rows and weights have arbitrary units and therefore no labels.
pub(crate) fn labels(
    screen: &Screen,
    view: &Area,
    (axis, breaks): (&Axis, &[TimeBreak]),
    bounds: &Bounds,
) -> Labels {
    let y = if bounds.rows.is_some() { Vec::new() } else { y_ticks(screen, view) };
    Labels {
        x: x_labels(screen, view, axis, breaks),
        y: (y.into_iter())
            .map(|tick| Label { pos: screen.css_y(screen.y_of(view, tick.value)), text: tick.text })
            .collect(),
        peak: peak_label(screen, view, axis, bounds.peak),
        plot: screen.plot_css(),
    }
}

fn x_labels(screen: &Screen, view: &Area, axis: &Axis, breaks: &[TimeBreak]) -> Vec<Label> {
    let max_ticks = (screen.plot_css().width / X_SPACING).max(1.0) as usize;
    let (lo, hi) = (view.x0 - axis.origin, view.x1 - axis.origin);
    let ticks = match axis.kind {
        // The slot before event 0 shows the state before the window and has no event number.
        AxisKind::Event => {
            event_ticks(lo.max(0.0), hi.min(axis.extent - axis.origin - 1.0), max_ticks)
        }
        AxisKind::Time => {
            let (lo, hi) = (lo.max(-axis.origin), hi.min(axis.extent - axis.origin));
            broken_time_ticks(lo, hi, max_ticks, breaks)
        }
        AxisKind::Weight => Vec::new(),
    };
    let labels = ticks.into_iter().map(|Tick { value, text }| Label {
        pos: screen.css_x(screen.x_of(view, value + axis.origin)),
        text,
    });
    // Labels are centered, so the last one may not fit.
    labels
        .filter(|label| {
            label.pos + label.text.chars().count() as f64 * CHARACTER_WIDTH / 2.0 <= screen.css[0]
        })
        .collect()
}

fn y_ticks(screen: &Screen, view: &Area) -> Vec<Tick> {
    byte_ticks(view.y0, view.y1, (screen.plot_css().height / Y_SPACING).max(1.0) as usize)
}

/// The device pixel of the peak: the middle of its slot, at its height. `None` when it is not in
/// view.
pub(crate) fn peak_pixel(screen: &Screen, view: &Area, axis: &Axis, peak: f64) -> Option<[f64; 2]> {
    let slot = axis.peak + 0.5;
    let seen = (view.x0..=view.x1).contains(&slot) && (view.y0..=view.y1).contains(&peak);
    (seen && peak > 0.0).then(|| [screen.x_of(view, slot), screen.y_of(view, peak)])
}

/// Formats a length along x, such as `412 events` or `7.90 ms`. Empty for weights.
pub(crate) fn measure_x(axis: &Axis, breaks: &[TimeBreak], [from, to]: [f64; 2]) -> String {
    let slots = match axis.kind {
        AxisKind::Time => time_at(to - axis.origin, breaks) - time_at(from - axis.origin, breaks),
        AxisKind::Event | AxisKind::Weight => to - from,
    };
    let slots = slots.abs().round();
    match axis.kind {
        AxisKind::Event => {
            format!("{} {}", grouped(slots as u64), if slots == 1.0 { "event" } else { "events" })
        }
        AxisKind::Time => Micros(slots as i64).to_string(),
        AxisKind::Weight => String::new(),
    }
}

/// Formats a length along y, such as `412.0 MiB`. Empty for rows.
pub(crate) fn measure_y(bounds: &Bounds, bytes: f64) -> String {
    if bounds.rows.is_some() {
        String::new()
    } else {
        Bytes(bytes.abs().round() as u64).to_string()
    }
}

fn peak_label(screen: &Screen, view: &Area, axis: &Axis, peak: f64) -> Option<PeakLabel> {
    let [x, y] = peak_pixel(screen, view, axis, peak)?;
    let text = format!("peak {}", Bytes(peak as u64));
    let width = text.chars().count() as f64 * CHARACTER_WIDTH + PEAK_PADDING;
    let plot = screen.plot_css();
    let (x, y) = (screen.css_x(x), screen.css_y(y));
    let right = plot.left + plot.width;
    // To the right of the mark if it fits there, otherwise to the left. Above the peak's line if it
    // fits there, otherwise below.
    let left = if x + PEAK_GAP + width <= right { x + PEAK_GAP } else { x - PEAK_GAP - width };
    let above = y - PEAK_GAP / 2.0 - PEAK_HEIGHT;
    let top = if above >= plot.top { above } else { y + PEAK_GAP / 2.0 };
    Some(PeakLabel {
        x: left.min(right - width).max(plot.left),
        y: top.min(plot.top + plot.height - PEAK_HEIGHT).max(plot.top),
        text,
    })
}

/// The device pixels of the grid lines.
///
/// Cached until the heights in view change. Computing ticks formats their texts, and a frame that
/// only pans along x does not need that.
#[derive(Debug, Default)]
pub(crate) struct GridLines {
    cache_key: Option<(PixelRect, f64, f64)>,
    pixels: Vec<f32>,
}

impl GridLines {
    /// Positions in device pixels from the bottom. Without a line at 0, where the baseline is.
    pub(crate) fn positions(&mut self, screen: &Screen, view: &Area) -> &[f32] {
        let cache_key = (screen.plot, view.y0, view.y1);
        if self.cache_key != Some(cache_key) {
            self.cache_key = Some(cache_key);
            self.pixels.clear();
            let ticks = y_ticks(screen, view).into_iter().filter(|tick| tick.value > 0.0);
            self.pixels.extend(ticks.map(|tick| screen.y_of(view, tick.value).round() as f32));
        }
        &self.pixels
    }
}

#[cfg(test)]
mod tests {
    use super::{GridLines, TimeBreak, labels, measure_x, measure_y};
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
    fn event_labels_count_from_the_origin() {
        let (bounds, view) = whole();
        let found = labels(&screen(), &view, (&EVENTS, &[]), &bounds);
        let texts: Vec<&str> = found.x.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["#0", "#10,000", "#20,000", "#30,000"]);
        // Event 10,000 is slot 10,001.
        assert!((found.x[1].pos - (64.0 + 10_001.0 / 38_001.0 * 824.0)).abs() < 1e-9);
        let near = Area { x0: 0.0, x1: 3.0, ..view };
        let near = labels(&screen(), &near, (&EVENTS, &[]), &bounds);
        assert_eq!(near.x.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["#0", "#1", "#2"]);
    }

    #[test]
    fn time_labels_may_be_negative() {
        let axis =
            Axis { kind: AxisKind::Time, extent: 1_200_000.0, origin: 100_000.0, peak: 500_000.0 };
        let bounds = Bounds::bytes(axis.extent, GIB);
        let found = labels(&screen(), &bounds.fit(), (&axis, &[]), &bounds);
        assert_eq!(found.x[0].text, "0.0 s");
        assert!((found.x[0].pos - (64.0 + 824.0 / 12.0)).abs() < 1e-9);
        let found = labels(
            &screen(),
            &Area { x0: 0.0, x1: 200_000.0, ..bounds.fit() },
            (&axis, &[]),
            &bounds,
        );
        assert_eq!(found.x.first().map(|l| l.text.as_str()), Some("-100 ms"));
    }

    #[test]
    fn byte_labels_are_at_their_heights() {
        let (bounds, view) = whole();
        let found = labels(&screen(), &view, (&EVENTS, &[]), &bounds);
        let texts: Vec<&str> = found.y.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["0", "8 GiB", "16 GiB", "24 GiB", "32 GiB", "40 GiB"]);
        assert!((found.y[0].pos - 416.0).abs() < 1e-9, "0 is at the plot's lower edge");
        let mut lines = GridLines::default();
        assert_eq!(lines.positions(&screen(), &view).len(), 5);
    }

    #[test]
    fn rows_and_weights_have_no_labels() {
        let rows =
            PlotKind::Rows(Rows { units: 40_960.0, row_units: 4096.0, min_px: 20.0, max_px: 20.0 });
        let bounds = Bounds { plot: 400.0, ..Bounds::new(1e6, GIB, rows) };
        let axis = Axis { kind: AxisKind::Weight, extent: 1e6, origin: 0.0, peak: 0.0 };
        let found = labels(&screen(), &bounds.fit(), (&axis, &[]), &bounds);
        assert!(found.x.is_empty() && found.y.is_empty() && found.peak.is_none());
        assert_eq!(
            (measure_x(&axis, &[], [0.0, 12.0]), measure_y(&bounds, 12.0)),
            (String::new(), String::new())
        );
    }

    #[test]
    fn measures_format_lengths() {
        let (bounds, _) = whole();
        assert_eq!(measure_x(&EVENTS, &[], [1.2, 0.0]), "1 event");
        assert_eq!(measure_x(&EVENTS, &[], [0.0, 1411.6]), "1,412 events");
        let time = Axis { kind: AxisKind::Time, origin: 100.0, ..EVENTS };
        assert_eq!(measure_x(&time, &[], [0.0, 1200.0]), "1.20 ms");
        let breaks = [TimeBreak { x0: 200.0, x1: 300.0, time: 5100.0 }];
        assert_eq!(measure_x(&time, &breaks, [100.0, 300.0]), "200 \u{b5}s");
        assert_eq!(measure_x(&time, &breaks, [100.0, 500.0]), "5.40 ms");
        assert_eq!(measure_y(&bounds, -412.0 * 1_048_576.0), "412.0 MiB");
        assert_eq!(
            [measure_x(&time, &[], [0.0, f64::NAN]), measure_y(&bounds, f64::NAN)],
            ["0 µs", "0 B"]
        );
    }

    #[test]
    fn peak_label_stays_in_the_plot() {
        let (bounds, view) = whole();
        for slot in [0.0, 100.0, 16_466.0, 37_000.0, 38_000.0] {
            for top in [view.y1, bounds.peak, bounds.peak * 4.0] {
                let axis = Axis { peak: slot, ..EVENTS };
                let found = labels(&screen(), &Area { y1: top, ..view }, (&axis, &[]), &bounds);
                let Some(peak) = found.peak else { panic!("no label for slot {slot}") };
                assert_eq!(peak.text, "peak 42.48 GiB");
                assert!(peak.x >= 64.0 && peak.x <= 888.0 - 100.0, "{slot}: {}", peak.x);
                assert!(peak.y >= 8.0 && peak.y <= 416.0 - 20.0, "{slot}: {}", peak.y);
            }
        }
        let away = Area { x0: 0.0, x1: 100.0, ..view };
        assert_eq!(labels(&screen(), &away, (&EVENTS, &[]), &bounds).peak, None);
    }
}
