//! The peak lens: separate peaks, the events around one, and the treemap of its live set.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::peak::{BandKind, nth_peak};
use vramscope_session::messages::views::{Answer, Query, TreemapCell};

#[test]
fn the_lens_equals_the_report() {
    let (mut lower, mut small) = (0, 0);
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let target = report_target(&file);
        for index in 0u32..6 {
            let nth = index as usize + 1;
            let Some(expected) = nth_peak(target, BandKind::Requested, nth, None) else { break };
            let query = Query::PeakLens { peak: index, width: 640.0, height: 400.0 };
            let lens = answer!(session, query, PeakLens);
            lower += u32::from(index > 0);
            assert_eq!(lens.shown, index, "{name}");
            assert_eq!(number(&lens.total), expected.total, "{name} {index}");
            for (peak, wanted) in lens.peaks.iter().zip(&expected.peaks) {
                assert_eq!((peak.event, number(&peak.bytes)), (wanted.event, wanted.bytes));
                assert_eq!(peak.lower.as_ref().map(number), wanted.next_lower_bytes);
                assert_eq!(peak.text, wanted.text);
            }
            let found: Vec<_> = lens
                .events
                .iter()
                .map(|of| (of.event, of.bytes.value, number(&of.total)))
                .collect();
            let wanted: Vec<_> = expected
                .around
                .iter()
                .map(|of| (of.event, i128::from(of.bytes), of.requested_bytes))
                .collect();
            assert_eq!(found, wanted, "{name} {index}");
            let is_event = usize::from(expected.event >= 0);
            let marked = lens.events.iter().filter(|of| of.is_peak).count();
            assert_eq!(marked, is_event, "{name} {index}");
            small += check_cells(&lens.cells, expected.total, [640.0, 400.0]);
            let categories: Vec<(String, u64)> = lens
                .cells
                .iter()
                .filter(|cell| cell.depth == 0)
                .map(|cell| (cell.terms[0].clone(), number(&cell.bytes)))
                .collect();
            let wanted: Vec<(String, u64)> = expected
                .categories
                .iter()
                .filter(|share| share.bytes.0 > 0)
                .map(|share| (format!("category:{}", share.category.name()), share.bytes.0))
                .collect();
            assert_eq!(categories, wanted, "{name} {index}");
            // Cells with terms are the largest sites of the report.
            for cell in lens.cells.iter().filter(|cell| cell.terms.len() == 2) {
                let site = expected.sites.iter().find(|site| {
                    cell.terms[0] == format!("category:{}", site.category.name())
                        && cell.label == site.site
                });
                let site = site.expect("a site of the report");
                assert_eq!(number(&cell.bytes), site.bytes, "{name} {index}: {}", cell.label);
                assert_eq!(number(&cell.blocks), u64::from(site.blocks));
            }
        }
    }
    assert!(lower > 3, "{lower} lower peaks");
    assert!(small > 0, "no small sites share a cell");
}

/// Asserts that cells lie in their category, and have areas in proportion. Returns the number of
/// cells of several small call sites.
fn check_cells(cells: &[TreemapCell], total: u64, [width, height]: [f64; 2]) -> u32 {
    let mut outer: Option<&TreemapCell> = None;
    let mut inner = 0;
    let mut small = 0;
    for cell in cells {
        let (w, h) = (cell.x.1 - cell.x.0, cell.y.1 - cell.y.0);
        assert!(w >= 0.0 && h >= 0.0);
        if cell.depth == 0 {
            if let Some(before) = outer {
                assert_eq!(inner, number(&before.bytes), "{}", before.label);
            }
            (outer, inner) = (Some(cell), 0);
            // Gaps take some of it.
            let share = number(&cell.bytes) as f64 / total as f64;
            let full = (w + 3.0) * (h + 3.0);
            if w > 0.0 && h > 0.0 {
                assert!((full / (width * height) - share).abs() < 1e-6, "{}", cell.label);
            }
        } else {
            inner += number(&cell.bytes);
            small += u32::from(cell.terms.is_empty());
            let category = outer.expect("a category before its sites");
            assert!(category.x.0 <= cell.x.0 + 1e-6 && cell.x.1 <= category.x.1 + 1e-6);
            assert!(category.y.0 <= cell.y.0 + 1e-6 && cell.y.1 <= category.y.1 + 1e-6);
        }
    }
    small
}

#[test]
fn a_device_without_blocks_has_an_empty_lens() {
    let (mut session, _) = open_session("scenarios/f05.pickle");
    let query = Query::PeakLens { peak: 9, width: f64::NAN, height: -4.0 };
    let lens = answer!(session, query, PeakLens);
    assert_eq!(lens.shown as usize, lens.peaks.len().saturating_sub(1));
    assert!(lens.cells.iter().all(|cell| cell.x.0.is_finite() && cell.x.1.is_finite()));
}
