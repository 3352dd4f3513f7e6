//! Private pools in the state, the minimap and pictures, compared with the segments of reports.

use super::harness::{GPT, TARGET, ask, load_file, open_session, report_target};
use vramscope_report::state::state;
use vramscope_session::FileSession;
use vramscope_session::messages::AxisKind;
use vramscope_session::messages::views::{Answer, Bands, ColorBy, GroupBy, Layer, Query};

/// A recording with private pools.
const POOLS: &str = "recorded/t26/pools.pickle";

fn picture(session: &mut FileSession, bands: Bands) -> String {
    let layer = Layer::Timeline {
        group: GroupBy::Block,
        color: ColorBy::Stack,
        bands,
        search: String::new(),
    };
    let [x0, y0] = [0.0, 0.0];
    let [x1, y1] = [300.0, 4e8];
    let axis = AxisKind::Event;
    let (width, height, dark, simulated) = (300, 200, true, None);
    let query = Query::Picture { layer, axis, x0, x1, y0, y1, width, height, dark, simulated };
    answer!(*session, query, Text)
}

#[test]
fn state_has_the_bytes_of_private_segments() {
    let ((mut session, _), file) = (open_session(POOLS), load_file(POOLS));
    for event in [-1, 0, 100, 200, i64::MAX] {
        let answer = answer!(session, Query::StateAt { event }, StateAt);
        let report = state(report_target(&file), (answer.event + 1) as u32, None);
        let private = report.segments.iter().filter(|s| s.pool.is_some_and(|p| p != [0, 0]));
        let bytes: u64 = private.map(|s| s.total_size.0).sum();
        let row = answer.bands.last().expect("rows");
        let found = (row.key.as_str(), row.label.as_str(), row.raw.clone());
        let expected = ("private_pools", "private pools", Some(bytes.to_string()));
        assert_eq!(found, expected, "at {event}");
    }
    let (mut without, _) = open_session(GPT);
    let answer = answer!(without, Query::StateAt { event: 100 }, StateAt);
    assert!(answer.bands.iter().all(|row| row.key != "private_pools"));
}

#[test]
fn minimap_and_pictures_know_private_pools() {
    let ((mut with, _), (mut without, _)) = (open_session(POOLS), open_session(GPT));
    for axis in [AxisKind::Event, AxisKind::Time] {
        assert_eq!(answer!(with, Query::Minimap { axis }, Minimap).pools, 3);
        assert_eq!(answer!(without, Query::Minimap { axis }, Minimap).pools, 0);
    }
    let label = "private pools";
    assert!(picture(&mut with, Bands::ALL).contains(label));
    assert!(
        !picture(&mut with, Bands::NONE).contains(label)
            && !picture(&mut without, Bands::ALL).contains(label)
    );
}
