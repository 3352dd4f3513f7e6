//! Tracks: annotated ranges in view.

use super::harness::{TARGET, ask, load_file, open_session};
use vramscope_report::info::info;
use vramscope_session::FileSession;
use vramscope_session::messages::views::{Answer, Query, TrackItem, Tracks};
use vramscope_session::messages::{AxisKind, Loaded};
use vramscope_trace::slicing::now;

#[test]
fn tracks_merge_narrow_ranges_and_lose_none() {
    let name = "recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz";
    let (mut session, loaded) = open_session(name);
    for axis in &loaded.parts[0].devices[0].axes {
        let mut counts = Vec::new();
        for columns in [10, 200, 1_000_000_000] {
            let query = Query::Tracks { axis: axis.kind, x0: 0.0, x1: axis.extent, columns };
            let tracks = answer!(session, query, Tracks);
            assert!(tracks.lanes >= 2, "ranges nest");
            let mut ranges = 0;
            for lane in 0..tracks.lanes {
                let items: Vec<&TrackItem> =
                    tracks.items.iter().filter(|i| i.lane == lane).collect();
                assert!(items.len() <= 2 * columns as usize + 1, "{} in {columns}", items.len());
                assert!(items.is_sorted_by(
                    |a, b| a.x0 <= b.x0 && a.x1 <= b.x1 + axis.extent / f64::from(columns)
                ));
                for item in items {
                    assert!(
                        0.0 <= item.x0 && item.x0 <= item.x1 && item.x1 <= axis.extent,
                        "{item:?}"
                    );
                    let count = item
                        .text
                        .strip_suffix(" ranges")
                        .and_then(|n| n.replace(',', "").parse().ok());
                    ranges += count.unwrap_or(1u32);
                    assert!(0.0 < item.density && item.density <= 1.0 || item.x0 == item.x1);
                    // What stands alone has room for a name, or nothing beside it.
                    let column = axis.extent / f64::from(columns);
                    let is_wide = item.x1 - item.x0 >= 4.0 * column;
                    assert!(count.is_none() || !is_wide || item.x1 - item.x0 <= 20.0 * column);
                }
            }
            counts.push(ranges);
        }
        assert_eq!(counts, [counts[0]; 3], "no range is lost");
        let file = load_file(name);
        let recorded: u32 = now(async |budget| info(name, &file.entries[0], budget).await)
            .annotations
            .values()
            .sum();
        assert!(
            counts[0] <= recorded && counts[0] * 10 >= recorded * 9,
            "{counts:?} of {recorded}"
        );
    }
    // A name has the same color in every rank.
    let color = |session: &mut FileSession, extent: f64| {
        let query = Query::Tracks { axis: AxisKind::Event, x0: 0.0, x1: extent, columns: 100_000 };
        let tracks = answer!(*session, query, Tracks);
        let item = tracks.items.into_iter().find(|i| i.text == "forward").expect("a forward pass");
        assert!(
            item.title.starts_with("## forward ##, ") && item.title.ends_with('s'),
            "{}",
            item.title
        );
        item.color
    };
    let (mut other, loaded_other) =
        open_session("recorded/ranks_fsdp/rank2_memory_snapshot.pickle.gz");
    let extent = |loaded: &Loaded| loaded.parts[0].devices[0].axes[0].extent;
    assert_eq!(color(&mut session, extent(&loaded)), color(&mut other, extent(&loaded_other)));
    // An empty view has no items, and a trace without a clock has no lanes.
    let empty = answer!(
        session,
        Query::Tracks { axis: AxisKind::Event, x0: f64::NAN, x1: 1.0, columns: 0 },
        Tracks
    );
    assert!(empty.items.is_empty() && empty.lanes > 0);
    let (mut session, _) = open_session("recorded/t20/gpt_small.pickle.gz");
    let none = answer!(
        session,
        Query::Tracks { axis: AxisKind::Event, x0: 0.0, x1: 9e9, columns: 9 },
        Tracks
    );
    assert_eq!(none, Tracks { lanes: 0, x0: 0.0, x1: 9e9, columns: 9, items: Vec::new() });
}
