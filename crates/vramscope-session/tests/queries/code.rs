//! The table of the code and the callers and callees of a line, compared with sums by hand.

use super::harness::{GPT, Opened, number, open};
use std::cmp::Reverse;
use vramscope_report::{FrameRecord, block_site, frames, slot_of, text};
use vramscope_session::messages::views::{
    Answer, CodePage, CodeRow, CodeSort, CodeSpec, Query, Sandwich,
};
use vramscope_trace::Block;

impl Opened {
    fn code(&mut self, spec: &CodeSpec) -> Vec<CodeRow> {
        let mut rows: Vec<CodeRow> = Vec::new();
        loop {
            let (spec, from) = (spec.clone(), rows.len() as u32);
            match self.ask(Query::Code { spec, from, count: 1000 }) {
                Answer::Code(CodePage { total, from: at, rows: page }) => {
                    assert_eq!(at, from);
                    rows.extend(page);
                    if rows.len() as u32 == total {
                        return rows;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn sandwich(&mut self, spec: &CodeSpec, frame: u32) -> Option<Sandwich> {
        match self.ask(Query::Sandwich { spec: spec.clone(), frame }) {
            Answer::Sandwich(found) => found.map(|found| *found),
            other => panic!("{other:?}"),
        }
    }

    /// The sum over the blocks whose call stack passes a test, in a slot.
    fn sum(&self, slot: u32, is_wanted: impl Fn(&Block, &[FrameRecord<'_>]) -> bool) -> i64 {
        let at = self.report();
        let live = at.trace().blocks.iter().filter(|b| b.is_live_at(slot));
        let wanted = live.filter(|block| is_wanted(block, &frames(at.snapshot(), block.stack)));
        wanted.map(|block| block.bytes.0 as i64).sum()
    }

    fn peak_slot(&self) -> u32 {
        slot_of(self.report().trace().requested_band.peak_event)
    }
}

fn spec(hide_framework: bool) -> CodeSpec {
    CodeSpec { descending: true, hide_framework, event: Some(1000), ..CodeSpec::default() }
}

#[test]
fn places_have_the_sums_of_the_stacks_through_them() {
    for (name, hide) in [(GPT, true), (GPT, false), ("recorded/t29/gpt_small_all.pickle.gz", true)]
    {
        let mut opened = open(name);
        let modules = opened.code(&spec(hide));
        assert!(modules.iter().all(|row| row.depth == 0) && !modules.is_empty());
        let open_keys: Vec<String> = modules.iter().map(|row| row.key.clone()).collect();
        let files = opened.code(&CodeSpec { open: open_keys.clone(), ..spec(hide) });
        let open_keys = files.iter().map(|row| row.key.clone()).collect();
        let all = opened.code(&CodeSpec { open: open_keys, ..spec(hide) });
        let (peak, steps) = {
            let at = opened.report();
            (opened.peak_slot(), at.entry.steps(at.index).map(|steps| steps.begins.clone()))
        };
        let mut lines = 0;
        for row in all.iter().filter(|row| row.frame.is_some()).take(60) {
            // A hidden frame counts only where it is the call site.
            let is_this =
                |f: &FrameRecord<'_>| format!("{}:{}:{}", f.file, f.line, f.name) == row.key;
            let is_hidden = hide && {
                let at = opened.report();
                at.trace().blocks.iter().any(|block| {
                    let mut frames = frames(at.snapshot(), block.stack).into_iter();
                    frames.any(|f| is_this(&f) && f.is_framework())
                })
            };
            if is_hidden {
                continue;
            }
            lines += 1;
            let through = |slot: u32| {
                opened.sum(slot, |block, frames| {
                    opened.report().trace().no_stack(block).is_none()
                        && frames
                            .iter()
                            .any(|f| format!("{}:{}:{}", f.file, f.line, f.name) == row.key)
                })
            };
            assert_eq!(number(&row.total), through(peak), "{name}: {}", row.key);
            let cursor = row.cursor.as_ref().expect("a cursor");
            assert_eq!(number(cursor), through(1001), "{name}: {}", row.key);
            let own = opened.sum(peak, |block, _| block_site(opened.report(), block) == row.title);
            assert!(number(&row.own) <= own, "{name}: lines of one label share a call site");
            if let Some(begins) = &steps
                && begins.len() > 2
            {
                let (first, last) = (begins[1], begins[begins.len() - 1]);
                let grown = (through(last) - through(first)) / (begins.len() as i64 - 2);
                assert_eq!(row.growth.as_ref().map(number), Some(grown), "{name}: {}", row.key);
            }
        }
        assert!(lines > 10, "{name}: {lines}");
        // Files have what goes through any of their lines.
        for row in all.iter().filter(|row| row.depth == 1 && !hide).take(20) {
            let whole = opened.sum(peak, |_, frames| frames.iter().any(|f| f.file == row.title));
            assert_eq!(number(&row.total), whole, "{name}: {}", row.title);
        }
        // Each block is its own in one place of each level.
        let own: i64 = modules.iter().map(|row| number(&row.own)).sum();
        let total = opened.sum(peak, |_, _| true);
        assert!(own <= total && own > total / 2, "{name}: {own} of {total}");
        assert!(modules.is_sorted_by_key(|row| Reverse(row.total.value)), "{name}");
    }
}

#[test]
fn the_table_sorts_filters_and_pages() {
    let mut opened = open(GPT);
    for (sort, of) in [
        (CodeSort::Own, (|row: &CodeRow| row.own.value) as fn(&CodeRow) -> i128),
        (CodeSort::Blocks, |row| row.blocks.value),
        (CodeSort::Largest, |row| row.largest.value),
        (CodeSort::Cursor, |row| row.cursor.as_ref().map_or(0, |bytes| bytes.value)),
    ] {
        let rows = opened.code(&CodeSpec { sort, ..spec(false) });
        assert!(rows.len() > 2 && rows.is_sorted_by_key(|row| Reverse(of(row))), "{sort:?}");
        let rows = opened.code(&CodeSpec { sort, descending: false, ..spec(false) });
        assert!(rows.is_sorted_by_key(of), "{sort:?}");
    }
    let names = opened.code(&CodeSpec { sort: CodeSort::Name, descending: false, ..spec(false) });
    assert!(names.is_sorted_by_key(|row| row.label.clone()));
    let text = "category:activation".to_owned();
    let rows = opened.code(&CodeSpec { text, ..spec(true) });
    let Answer::Search(Some(found)) =
        opened.ask(Query::Search { text: "category:activation".into() })
    else {
        panic!("a valid search")
    };
    assert!(!rows.is_empty() && rows.iter().all(|row| row.total.value <= found.bytes.value));
    assert!(rows.iter().all(|row| ["activations", ""].contains(&&*row.category)));
    let none = opened.code(&CodeSpec { text: "no such thing".into(), ..spec(true) });
    assert!(none.is_empty());
    let invalid = opened.code(&CodeSpec { text: ">abc".into(), ..spec(true) });
    assert!(invalid.is_empty());
}

#[test]
fn a_sandwich_has_callers_and_callees() {
    let mut opened = open(GPT);
    let open_all = |opened: &mut Opened| {
        let modules = opened.code(&spec(true));
        let open = modules.iter().map(|row| row.key.clone()).collect();
        let files = opened.code(&CodeSpec { open, ..spec(true) });
        let open = files.iter().map(|row| row.key.clone()).collect();
        opened.code(&CodeSpec { open, ..spec(true) })
    };
    let rows = open_all(&mut opened);
    let peak = opened.peak_slot();
    let (mut with_callers, mut with_callees) = (0, 0);
    for row in rows.iter().filter(|row| row.frame.is_some() && row.total.value > 0) {
        let found = opened.sandwich(&spec(true), row.frame.expect("a line")).expect("a frame");
        assert_eq!((&found.title, &found.total), (&row.title, &row.total));
        assert_eq!(found.own, row.own);
        let sum = |rows: &[vramscope_session::messages::views::StackShareRow]| -> i64 {
            rows.iter().map(|row| number(&row.bytes)).sum()
        };
        assert!(sum(&found.callers) <= number(&found.total));
        assert_eq!(sum(&found.callees) + number(&found.own), number(&found.total), "{row:?}");
        for caller in &found.callers {
            let at = opened.report();
            let is_called = |frames: &[FrameRecord<'_>]| {
                let listed: Vec<String> = frames
                    .iter()
                    .filter(|f| !f.is_framework())
                    .map(|f| text::frame_label(&f.name, &f.file, f.line))
                    .collect();
                let last = listed.iter().rposition(|label| *label == row.title);
                last.and_then(|last| listed.get(last + 1)).is_some_and(|of| *of == caller.site)
            };
            let bytes = opened.sum(peak, |block, frames| {
                at.trace().no_stack(block).is_none() && is_called(frames)
            });
            assert_eq!(number(&caller.bytes), bytes, "{} calls {}", caller.site, row.title);
        }
        with_callers += usize::from(!found.callers.is_empty());
        with_callees += usize::from(!found.callees.is_empty());
    }
    assert!(with_callers > 3 && with_callees > 3, "{with_callers} {with_callees}");
    assert!(opened.sandwich(&spec(true), u32::MAX).is_none());
}
