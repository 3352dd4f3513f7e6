//! The table of blocks.

use super::harness::{GPT, Opened, all_files, hit, number, open, table, test_data};
use vramscope_report::blocks::{BlockRecord, Lifetime, blocks};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::state::state;
use vramscope_session::messages::DeviceRef;
use vramscope_session::messages::views::{
    Answer, BlockRow, BlockSort, BlockTable, EventFilter, Query,
};

impl Opened {
    /// The rows of the report of blocks, each with its block index.
    pub(crate) fn rows(&self) -> Vec<(u32, BlockRecord<'_>)> {
        let trace = self.report().trace();
        let rows = blocks(self.report(), BlockSort::Size, None).blocks.into_iter().map(|row| {
            let is_row = |b: &vramscope_trace::Block| {
                b.address == row.address && b.reuse() == row.reuse && b.bytes == row.bytes
            };
            (trace.blocks.iter().position(is_row).expect("a block of the trace") as u32, row)
        });
        rows.collect()
    }
}

/// The sort key of a row: a number, then a text.
type Key = Box<dyn Fn(&BlockRecord, u32) -> (u128, String)>;

#[test]
fn every_column_sorts_blocks() {
    for name in [
        GPT,
        "recorded/t20/streams.pickle.gz",
        "edge/lost_alloc.pickle",
        "recorded/gpt_late.pickle.gz",
    ] {
        let name =
            if test_data().join(name).exists() { name.to_owned() } else { name.replace(".gz", "") };
        let mut opened = open(&name);
        let slots = opened.report().trace().slots();
        let spans: Vec<(u32, u32)> =
            opened.report().trace().blocks.iter().map(|b| (b.enters, b.leaves)).collect();
        let sites: Vec<String> = {
            let blocks = opened.report().trace().blocks.len() as u32;
            (0..blocks).map(|b| hit(&mut opened, b).expect("a block").site).collect()
        };
        let by = |key: fn(&BlockRecord) -> u128| -> Key {
            Box::new(move |r, _| (key(r), String::new()))
        };
        let (enters, leaves) = (spans.clone(), spans);
        let columns: Vec<(BlockSort, Key)> = vec![
            (BlockSort::Size, by(|r| r.bytes.0.into())),
            (BlockSort::BlockSize, by(|r| r.block_bytes.0.into())),
            (BlockSort::Category, Box::new(|r, _| (0, r.category.name().to_owned()))),
            (
                BlockSort::Allocated,
                Box::new(move |_, i| (enters[i as usize].0.into(), String::new())),
            ),
            (
                BlockSort::Freed,
                Box::new(move |r, i| {
                    let leaves = leaves[i as usize].1;
                    let is_live = leaves == slots && r.free_requested_event.is_none();
                    ((u128::from(leaves) * 2) + u128::from(is_live), String::new())
                }),
            ),
            (BlockSort::Lifetime, by(|r| r.lifetime.raw().into())),
            (BlockSort::ByteSeconds, by(|r| u128::from(r.bytes.0) * u128::from(r.lifetime.raw()))),
            (BlockSort::Address, by(|r| r.address.0.into())),
            (BlockSort::Stream, by(|r| (i128::from(r.stream) + (1 << 64)) as u128)),
            (BlockSort::Site, Box::new(move |_, i| (0, sites[i as usize].clone()))),
        ];
        for (sort, key) in columns {
            for descending in [false, true] {
                let found = opened.order(&BlockTable { sort, descending, ..table("") });
                let mut expected: Vec<_> =
                    opened.rows().iter().map(|(i, row)| (key(row, *i), *i)).collect();
                expected.sort_by(|a, b| {
                    let keys = if descending { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) };
                    keys.then(a.1.cmp(&b.1))
                });
                let expected: Vec<u32> = expected.into_iter().map(|(_, i)| i).collect();
                assert!(found == expected, "{name}: {sort:?}, descending {descending}");
            }
        }
    }
}

#[test]
fn filters_add_up_to_the_reports() {
    let mut opened = open("truth/gpt_step.pickle.gz");
    let report = peak(opened.report(), BandKind::Requested, None);
    let (event, total, categories) = (report.event, report.total, report.categories.clone());
    let live = BlockTable { live_at: Some(event), ..table("") };
    let page = opened.blocks(&live, 0, 1, None);
    assert_eq!(page.total, peak(opened.report(), BandKind::Requested, None).blocks);
    let mut sum = 0;
    for share in &categories {
        let of = BlockTable { category: share.category.name().into(), ..live.clone() };
        let order = opened.order(&of);
        let trace = opened.report().trace();
        let bytes: u64 = order.iter().map(|&i| trace.blocks[i as usize].bytes.0).sum();
        assert_eq!(
            (order.len() as u32, bytes),
            (share.blocks, share.bytes.0),
            "{:?}",
            share.category
        );
        sum += bytes;
    }
    assert_eq!(sum, total);
    assert_eq!(
        opened.blocks(&BlockTable { category: "nonsense".into(), ..live }, 0, 9, None).total,
        0
    );
    // The blocks that are live at an event are those of the state.
    for event in [-9, -1, 0, 50, 700, i64::MAX] {
        let slots = opened.report().trace().slots();
        let slot = event.saturating_add(1).clamp(0, i64::from(slots) - 1) as u32;
        let (blocks, bytes) = {
            let state = state(opened.report(), slot, None);
            (state.blocks.len(), state.requested_bytes)
        };
        let order = opened.order(&BlockTable { live_at: Some(event), ..table("") });
        let trace = opened.report().trace();
        assert_eq!(order.len(), blocks, "{event}");
        assert_eq!(
            order.iter().map(|&i| trace.blocks[i as usize].bytes.0).sum::<u64>(),
            bytes,
            "{event}"
        );
    }
    // A row equals the row of the report, and `near` finds it.
    let rows = opened.order(&table(""));
    for &block in rows.iter().step_by(97) {
        let at = opened.blocks(&table(""), 0, 0, Some(block)).at.expect("a row");
        let page = opened.blocks(&table(""), at, 1, None);
        let BlockRow { record, view } = &page.rows[0];
        let all = opened.rows();
        let (_, row) = all.iter().find(|(i, _)| *i == block).expect("a block");
        // The row has no tables of stacks and shapes that an index could be of.
        let (stack, shape, backward) = (record.stack, None, None);
        assert_eq!(*record, BlockRecord { stack, shape, backward, ..row.clone() });
        assert_eq!(view.block, block);
        assert_eq!(view.allocated == "before window", row.alloc_event.is_none());
        let is_freed = row.free_completed_event.is_some();
        assert_eq!(view.freed.starts_with('#'), is_freed, "{}", view.freed);
        assert_eq!(number(&view.handle), row.stream);
        let Lifetime::Time(time) = row.lifetime else { panic!("the file has times") };
        assert!(view.life.ends_with(&format!(" events, {time}")), "{}", view.life);
    }
    let few = opened.blocks(&table(">1MiB"), 0, 1, None);
    let all = opened.report().trace().blocks.len();
    assert!(
        few.text.replace(',', "").starts_with(&format!("{} of {all} blocks ", few.total)),
        "{}",
        few.text
    );
}

#[test]
fn rows_have_texts_for_every_kind_of_alloc_and_free() {
    let texts = |name: &str| {
        let mut opened = open(name);
        if opened.loaded.parts[0].devices.is_empty() {
            return Vec::new();
        }
        let mut rows =
            opened.blocks(&BlockTable { sort: BlockSort::Freed, ..table("") }, 0, 500, None).rows;
        rows.sort_by(|a, b| a.view.reference.cmp(&b.view.reference));
        rows.into_iter()
            .map(|r| format!("{} {} {}", r.view.reference, r.view.allocated, r.view.freed))
            .collect::<Vec<_>>()
    };
    assert!(
        texts("scenarios/f04.pickle").contains(&"0:0x1000@pre before window #2".to_owned()),
        "{:?}",
        texts("scenarios/f04.pickle")
    );
    let all: Vec<String> = all_files().iter().flat_map(|f| texts(f)).collect();
    for part in [" not recorded ", " pending", " not freed", " before #"] {
        assert!(all.iter().any(|w| w.contains(part)), "no file has a block with {part:?}");
    }
}

#[test]
fn pages_of_two_devices_are_cached_separately() {
    let mut opened = open("edge/two_devices.pickle");
    let devices = opened.loaded.parts[0].devices.clone();
    assert!(devices.len() > 1);
    for _ in 0..2 {
        for device in &devices {
            let target = DeviceRef { part: 0, device: device.device };
            let query =
                Query::Events { filter: EventFilter::default(), from: 0, count: 500, near: None };
            let Answer::Events(page) = opened.ask_of(target, query) else { panic!("a page") };
            assert_eq!(i64::from(page.total), number(&device.events));
            let query = Query::Blocks { table: table(""), from: 0, count: 500, near: None };
            let Answer::Blocks(page) = opened.ask_of(target, query) else { panic!("a page") };
            assert_eq!(i64::from(page.total), number(&device.blocks));
            assert!(
                page.rows
                    .iter()
                    .all(|r| r.view.reference.starts_with(&format!("{}:", device.device)))
            );
        }
    }
}
