//! The plot and the lines of a summary, compared with its bar and with the lines of reports.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::number;
use vramscope_report::lines::largest_lines;
use vramscope_session::FileSession;
use vramscope_session::messages::views::{Answer, PLOT, PlotArea, Query, SummaryPlot};
use vramscope_trace::slicing::now;

const HEALTHY: &str = "recorded/t26/gpt_small.pickle.gz";
const FAILED: &str = "recorded/t26/oom_observer.pickle.gz";

fn plot(session: &mut FileSession) -> SummaryPlot {
    *answer!(*session, Query::SummaryPlot {}, SummaryPlot)
}

/// The height of an area at each unit of the box's width.
fn heights(area: &PlotArea) -> Vec<f64> {
    let path = area.path.trim_end_matches('Z').replace('H', " H").replace('V', " V");
    let (mut heights, mut height) = (Vec::new(), 0.0);
    for command in path.split(' ') {
        match command.split_at_checked(1) {
            Some(("H", x)) => heights.resize(x.parse::<f64>().expect("x").round() as usize, height),
            Some(("V", y)) => height = f64::from(PLOT[1]) - y.parse::<f64>().expect("y"),
            _ => {}
        }
    }
    assert_eq!(heights.len(), PLOT[0] as usize, "{}", area.path);
    heights
}

#[test]
fn areas_are_stacked_and_have_the_bytes_of_the_bar_at_the_mark() {
    for (name, label) in [(HEALTHY, "peak, #"), (FAILED, "failed here, #")] {
        let (mut session, _) = open_session(name);
        let plot = plot(&mut session);
        let bar = answer!(session, Query::Summary {}, Summary).view.bar.expect("a bar");
        let mark = plot.mark.expect("a mark");
        assert_eq!(
            (mark.event, bar.event),
            (bar.event.map_or(-1, i64::from), Some(mark.event as u32))
        );
        assert!(mark.label.starts_with(label), "{}", mark.label);
        assert_eq!(plot.limit, bar.capacity.map(|of| number(&of.bytes) as f64), "{name}");
        let in_use = bar.parts.iter().filter(|part| part.color.is_some());
        assert_eq!(mark.bytes, in_use.clone().map(|part| number(&part.bytes) as f64).sum::<f64>());
        let stack: Vec<Vec<f64>> = plot.areas.iter().map(heights).collect();
        for pair in stack.windows(2) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(upper, lower)| upper >= lower), "{name}");
        }
        // The top of the mark's column, and what lies between two tops.
        let unit = f64::from(PLOT[1]) / plot.top;
        let at = (mark.at * f64::from(PLOT[0])) as usize;
        assert!(
            (stack[0][at] - mark.bytes * unit).abs() < 0.1,
            "{name}: {} {mark:?}",
            stack[0][at]
        );
        for (i, area) in plot.areas.iter().enumerate() {
            let own = stack[i][at] - stack.get(i + 1).map_or(0.0, |below| below[at]);
            let part = in_use.clone().find(|part| part.name == area.name);
            let bytes = part.map_or(0, |part| number(&part.bytes));
            assert!((own - bytes as f64 * unit).abs() < 0.2, "{name}: {} {own}", area.name);
        }
        // A label lies in its band.
        for (i, area) in plot.areas.iter().enumerate() {
            let Some([x, y]) = area.label_at else { continue };
            let at = (x * f64::from(PLOT[0])) as usize;
            let height = (1.0 - y) * f64::from(PLOT[1]);
            let below = stack.get(i + 1).map_or(0.0, |below| below[at]);
            assert!(below < height && height < stack[i][at], "{name}: {area:?}");
        }
        assert!(plot.steps.windows(2).all(|pair| pair[0].to <= pair[1].from), "{:?}", plot.steps);
    }
}

#[test]
fn lines_are_those_of_the_moment_with_what_they_were() {
    let (mut session, _) = open_session(FAILED);
    let plot = plot(&mut session);
    assert_eq!(plot.lines_title, "Largest lines at this moment");
    let file = load_file(FAILED);
    let slot = plot.mark.expect("a mark").event as u32 + 1;
    let (lines, before) =
        now(async |budget| largest_lines(report_target(&file), slot, 24, budget).await);
    assert_eq!(before.as_deref(), Some(&*plot.before));
    assert!(plot.lines.is_sorted_by_key(|line| std::cmp::Reverse(number(&line.bytes))));
    assert_eq!(plot.lines[0].part, 1.0);
    for line in &plot.lines {
        assert_eq!(line.file.is_empty(), line.line == 0, "{line:?}");
        // Neighbors of one function are one row: `gpt.py:18-19 forward`.
        let number_of_line = line.line.to_string();
        assert!(line.line == 0 || line.site.contains(&number_of_line), "{line:?}");
        let same = |of: &&vramscope_report::lines::HoldingLine| of.bytes.0 == number(&line.bytes);
        let Some(of) = lines.iter().find(same) else { continue };
        assert_eq!(line.share, format!("{} %", of.percent));
        let (was, is) = (of.was.expect("a pass before").0, of.bytes.0);
        let expected = match line.was.as_str() {
            "the same" => was.abs_diff(is) * 200 <= is,
            "new" => was * 100 < is,
            text => text == format!("was {}", of.was.expect("bytes").brief()),
        };
        assert!(expected, "{line:?} {was} {is}");
    }
    let words: Vec<&str> = plot.lines.iter().map(|line| line.was.as_str()).collect();
    assert!(words.iter().any(|was| was.starts_with("was ")), "{words:?}");
}

#[test]
fn a_state_alone_has_lines_and_no_areas() {
    let (mut session, _) = open_session("edge/state_only.pickle");
    let plot = plot(&mut session);
    assert!(plot.areas.is_empty() && plot.mark.is_none() && plot.steps.is_empty(), "{plot:?}");
    assert_eq!((&*plot.lines_title, &*plot.before), ("Largest lines at the end", ""));
    assert!(!plot.lines.is_empty() && plot.lines.iter().all(|line| line.was.is_empty()));
}
