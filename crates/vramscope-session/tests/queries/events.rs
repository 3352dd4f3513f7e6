//! The table of events.

use super::harness::{GPT, Opened, open};
use vramscope_report::segments::segments;
use vramscope_session::messages::views::{Answer, EventFilter, EventPage, EventRow, Query};
use vramscope_trace::slicing::now;

impl Opened {
    /// A page of the table of events.
    pub(crate) fn events(
        &mut self,
        filter: &EventFilter,
        from: u32,
        count: u32,
        near: Option<u32>,
    ) -> EventPage {
        match self.ask(Query::Events { filter: filter.clone(), from, count, near }) {
            Answer::Events(page) => page,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn filter(actions: &[&str], text: &str) -> EventFilter {
    EventFilter { actions: actions.iter().map(|&a| a.to_owned()).collect(), text: text.into() }
}

#[test]
fn rows_have_the_block_and_size_of_their_event() {
    let mut opened = open(GPT);
    let total = opened.report().trace().device.events.len() as u32;
    let all = filter(&[], " ");
    let mut seen = 0;
    let mut times = Vec::new();
    while seen < total {
        let page = opened.events(&all, seen, u32::MAX, None);
        assert_eq!((page.total, page.from), (total, seen));
        let trace = opened.report().trace();
        assert!(!page.rows.is_empty() && page.rows.len() <= 500, "a page is bounded");
        for EventRow { record, view } in &page.rows {
            assert_eq!(record.index.0, seen);
            assert_eq!(view.live.0, trace.requested.at(seen + 1));
            let block = view.block.map(|i| &trace.blocks[i as usize]);
            if ["alloc", "free_requested", "free_completed"].contains(&record.action.as_ref()) {
                let block = block.expect("allocs and frees are about a block");
                let event = match record.action.as_ref() {
                    "alloc" => block.alloc_event(),
                    "free_requested" => block.free_requested(),
                    _ => block.free_completed(),
                };
                assert_eq!(event.map(|e| e.0), Some(seen));
                assert_eq!(record.size, block.bytes);
                assert!(view.place.starts_with(&block.address.to_string()));
            } else {
                assert!(block.is_none(), "{}", record.action);
            }
            times.push(view.time.clone());
            seen += 1;
        }
    }
    assert!(times.iter().all(|t| t.starts_with('+')));
    let page = opened.events(&all, total + 5, 10, Some(total + 9));
    assert_eq!((page.from, page.rows.len(), page.at), (total, 0, Some(total - 1)));
    assert!(page.text.ends_with(" events") && !page.text.contains(" of "), "{}", page.text);

    // The filter does not change the list of actions. Their counts add up.
    let frees = opened.events(&filter(&["free_completed", "nonsense"], ""), 0, 3, Some(100));
    let count = |name: &str| {
        let row = frees.actions.iter().find(|r| r.key == name).expect("an action");
        row.raw.as_deref().expect("a number").parse::<u32>().expect("digits")
    };
    assert_eq!(frees.actions.iter().map(|r| count(&r.key)).sum::<u32>(), total);
    assert_eq!(frees.total, count("free_completed"));
    assert_eq!(frees.text.replace(',', ""), format!("{} of {total} events", frees.total));
    // `near` is the last row at or before the event.
    let at = frees.at.expect("a free before event 100");
    let around = opened.events(&filter(&["free_completed", "nonsense"], ""), at, 2, None);
    assert!(around.rows[0].record.index.0 <= 100 && around.rows[1].record.index.0 > 100);
    assert_eq!(opened.events(&filter(&["nonsense"], ""), 0, 3, Some(100)).total, 0);

    // Actions and sizes filter together.
    let big = opened.events(&filter(&["alloc"], ">=1MiB"), 0, 500, None);
    assert!(
        big.total > 0
            && big.rows.iter().all(|r| r.record.size.0 >= 1 << 20 && r.record.action == "alloc")
    );
    let expected = opened
        .rows()
        .iter()
        .filter(|(_, r)| r.alloc_event.is_some() && r.bytes.0 >= 1 << 20)
        .count();
    assert_eq!(big.total as usize, expected);
    assert_eq!(opened.events(&filter(&[], "#7"), 0, 9, None).rows[0].record.index.0, 7);
}

#[test]
fn oom_and_segment_events_have_their_sizes() {
    let mut opened = open("recorded/oom_expandable.pickle.gz");
    let ooms = opened.events(&filter(&["oom"], ""), 0, 100, None);
    let trace = opened.report().trace();
    assert_eq!(ooms.total as usize, trace.ooms.len());
    for (row, oom) in ooms.rows.iter().zip(&trace.ooms) {
        assert_eq!(
            (row.record.index, row.record.size, row.view.block),
            (oom.event, oom.requested, None)
        );
    }
    let maps = opened.events(&filter(&["segment_map"], ""), 0, 500, None);
    let churn = now(async |budget| segments(opened.report(), 0, None, budget).await).churn;
    assert_eq!(maps.total, churn.segment_maps);
    assert_eq!(maps.rows.iter().map(|r| r.record.size.0).sum::<u64>(), churn.segment_map_bytes);
    // Without a clock, rows have no time.
    let mut opened = open("edge/no_time.pickle");
    assert!(
        opened
            .events(&EventFilter::default(), 0, 9, None)
            .rows
            .iter()
            .all(|r| r.view.time.is_empty())
    );
}
