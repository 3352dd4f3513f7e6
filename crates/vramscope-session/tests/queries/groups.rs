//! Groups of blocks by filters, compared with the reports of the program.

use super::events::filter;
use super::harness::{GPT, Opened, TARGET, load_file, number, open, report_target, table};
use super::value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_report::blocks::{BlockRecord, BlockSort, blocks};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::phases::phases;
use vramscope_report::{Category, Target, block_site, slot_of};
use vramscope_session::messages::views::{Answer, FlameSpec, GroupCard, Query, SearchResult};
use vramscope_session::messages::{BlockDetail, Request, Response};
use vramscope_trace::slicing::now;

const STREAMS: &str = "recorded/t26/streams.pickle.gz";
const POOLS: &str = "recorded/t26/pools.pickle";

impl Opened {
    fn group(&mut self, text: &str, event: Option<i64>) -> Option<GroupCard> {
        match self.ask(Query::Group { text: text.into(), event }) {
            Answer::Group(card) => card.map(|card| *card),
            other => panic!("{other:?}"),
        }
    }

    fn detail(&mut self, block: u32) -> BlockDetail {
        self.session.post(Request::Block { id: 6, target: TARGET, block });
        match self.session.step().expect("an answer").response {
            Response::Block { id: 6, detail: Some(detail) } => detail,
            other => panic!("{other:?}"),
        }
    }

    fn found(&mut self, text: &str) -> SearchResult {
        match self.ask(Query::Search { text: text.into() }) {
            Answer::Search(found) => *found.unwrap_or_else(|| panic!("{text} is valid")),
            other => panic!("{other:?}"),
        }
    }

    /// The blocks of a search, ascending.
    pub(super) fn chosen(&mut self, text: &str) -> Vec<u32> {
        let mut order = self.order(&table(text));
        order.sort_unstable();
        order
    }

    /// The blocks for which a test of their record in the program holds, ascending.
    fn expected(&self, is_wanted: impl Fn(&BlockRecord<'_>) -> bool) -> Vec<u32> {
        let at = self.report();
        let all = &at.trace().blocks;
        let report = blocks(at, BlockSort::Size, None);
        assert_eq!(report.blocks.len(), all.len());
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|&i| (Reverse(all[i as usize].bytes), i));
        let records = order.iter().zip(&report.blocks);
        assert!(records.clone().all(|(&i, record)| all[i as usize].bytes == record.bytes));
        let wanted = records.filter(|(_, record)| is_wanted(record));
        let mut wanted: Vec<u32> = wanted.map(|(&i, _)| i).collect();
        wanted.sort_unstable();
        wanted
    }
}

/// Whether a block is live in the slot after an event, and the bytes of such blocks.
fn live_bytes(at: Target<'_>, blocks: &[u32], slot: u32) -> i64 {
    let of = |&i: &u32| &at.trace().blocks[i as usize];
    let live = blocks.iter().map(of).filter(|b| b.is_live_at(slot));
    live.map(|block| block.bytes.0 as i64).sum()
}

#[test]
fn categories_sites_and_streams_equal_the_programs_records() {
    let mut sites_seen = 0;
    for name in [GPT, STREAMS, POOLS, "recorded/gpt_late.pickle.gz"] {
        let mut opened = open(name);
        let at = opened.report();
        let mut categories: BTreeMap<String, Category> = BTreeMap::new();
        let mut streams: BTreeMap<String, i64> = BTreeMap::new();
        let mut sites: Vec<String> = Vec::new();
        for record in blocks(at, BlockSort::Size, None).blocks {
            categories.insert(format!("category:{}", record.category.name()), record.category);
            streams.insert(format!("stream:{}", record.stream), record.stream);
        }
        for block in &at.trace().blocks {
            sites.push(block_site(at, block));
        }
        let every = at.trace().blocks.len();
        let mut all = 0;
        for (term, category) in &categories {
            let expected = opened.expected(|record| record.category == *category);
            all += expected.len();
            assert_eq!(opened.chosen(term), expected, "{name}: {term}");
        }
        assert_eq!(all, every, "{name}: each block has one category");
        for (term, stream) in &streams {
            let expected = opened.expected(|record| record.stream == *stream);
            assert_eq!(opened.chosen(term), expected, "{name}: {term}");
        }
        let mut terms = sites.clone();
        terms.sort_unstable();
        terms.dedup();
        sites_seen += terms.len();
        for site in terms {
            let expected: Vec<u32> =
                (0..).zip(&sites).filter(|(_, of)| **of == site).map(|(i, _)| i).collect();
            assert_eq!(opened.chosen(&format!("\"site:{site}\"")), expected, "{name}: {site}");
        }
        // Of terms with one key, one must hold.
        let both = "category:activation category:parameter";
        let expected =
            opened.expected(|r| [Category::Activation, Category::Parameter].contains(&r.category));
        assert_eq!(opened.chosen(both), expected, "{name}");
    }
    assert!(sites_seen > 20, "{sites_seen}");
}

#[test]
fn a_site_may_leave_out_function_and_line() {
    let mut opened = open(GPT);
    let sites: Vec<String> = {
        let at = opened.report();
        at.trace().blocks.iter().map(|block| block_site(at, block)).collect()
    };
    for (term, start) in [("site:gpt.py:43", "gpt.py:43 "), ("site:GPT.py", "gpt.py:")] {
        let expected: Vec<u32> =
            (0..).zip(&sites).filter(|(_, of)| of.starts_with(start)).map(|(i, _)| i).collect();
        assert!(!expected.is_empty() && expected.len() < sites.len());
        assert_eq!(opened.chosen(term), expected, "{term}");
    }
    assert!(opened.chosen("site:gpt.py:4").is_empty(), "a part of a line is another line");
}

#[test]
fn steps_and_phases_equal_the_programs_phases() {
    let mut opened = open(GPT);
    let file = load_file(GPT);
    let report = now(async |budget| phases(report_target(&file), None, budget).await);
    assert!(report.steps.len() > 1);
    let allocated = |opened: &Opened, is_in: &dyn Fn(u32) -> bool| -> Vec<u32> {
        let blocks = (0..).zip(&opened.report().trace().blocks);
        let wanted = blocks.filter(|(_, b)| b.alloc_event().is_some_and(|event| is_in(event.0)));
        wanted.map(|(i, _)| i).collect()
    };
    let (mut of_steps, mut backward) = (Vec::new(), Vec::new());
    for step in &report.steps {
        let (begin, end) = (step.begin, step.end);
        of_steps.push((step.step, begin, end));
        let expected = allocated(&opened, &|event| (begin..end).contains(&event));
        assert!(!expected.is_empty());
        assert_eq!(opened.chosen(&format!("step:{}", step.step)), expected);
        for phase in step.phases.iter().filter(|phase| phase.phase == "backward") {
            backward.extend(allocated(&opened, &|e| (phase.begin..phase.end).contains(&e)));
        }
    }
    let (first, last) = (report.steps[0].step, report.steps[1].step);
    let both = format!("step:{first}-{last}");
    assert_eq!(opened.chosen(&both), opened.chosen(&format!("step:{first} step:{last}")));
    backward.extend(
        report.outside.iter().filter(|p| p.phase == "backward").flat_map(|phase| {
            allocated(&opened, &|event| (phase.begin..phase.end).contains(&event))
        }),
    );
    backward.sort_unstable();
    assert!(!backward.is_empty());
    assert_eq!(opened.chosen("phase:backward"), backward);
    // The bars of a group have its most bytes in each step.
    let card = opened.group("category:activation", None).expect("valid");
    assert_eq!(card.steps.len(), of_steps.len());
    let chosen = opened.chosen("category:activation");
    for (bar, (step, begin, end)) in card.steps.iter().zip(of_steps) {
        let at = opened.report();
        let most = (begin + 1..=end).map(|slot| live_bytes(at, &chosen, slot)).max();
        assert_eq!(Some(number(&bar.bytes)), most, "step {step}");
        assert_eq!(
            (bar.label.clone(), bar.term.clone()),
            (step.to_string(), format!("step:{step}"))
        );
    }
    assert!(card.steps.iter().any(|bar| bar.share == 1.0), "the largest bar is full");
}

#[test]
fn pools_lifetimes_moments_and_ranks() {
    let mut opened = open(POOLS);
    let private = opened.expected(|r| r.pool.is_some_and(|id| id != [0, 0]));
    assert!(!private.is_empty());
    assert_eq!(opened.chosen("pool:private"), private);
    assert_eq!(opened.chosen("pool:default"), opened.expected(|r| r.pool == Some([0, 0])));
    assert_eq!(opened.chosen("pool:small"), opened.expected(|r| r.segment_type == "small"));
    let all = opened.report().trace().blocks.len();
    assert_eq!(opened.chosen("pool:small pool:large").len(), all);
    let mut opened = open("recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz");
    let all = opened.report().trace().blocks.len();
    assert_eq!(opened.chosen("rank:3").len(), all);
    assert!(opened.chosen("rank:4").is_empty());
    let mut opened = open(GPT);
    let trace = opened.report().trace();
    let peak = slot_of(trace.requested_band.peak_event);
    let (end, slots) = (trace.slots() - 1, trace.slots());
    let lives: Vec<(u32, u32)> = trace.blocks.iter().map(|b| (b.enters, b.leaves)).collect();
    let lifetimes: Vec<u64> =
        trace.blocks.iter().map(|b| vramscope_trace::lifetime(trace, b)).collect();
    let of = |is_in: &dyn Fn(usize) -> bool| -> Vec<u32> {
        (0..lives.len()).filter(|&i| is_in(i)).map(|i| i as u32).collect()
    };
    let live = |slot: u32| of(&|i| lives[i].0 <= slot && slot < lives[i].1);
    assert_eq!(opened.chosen("live@peak"), live(peak));
    assert_eq!(opened.chosen("live@start"), live(0));
    assert_eq!(opened.chosen("live@end"), live(end));
    assert_eq!(opened.chosen("live@#100"), live(101));
    assert!(opened.chosen(&format!("live@{slots}")).is_empty(), "after the window");
    assert_eq!(opened.chosen("lifetime:>10ms"), of(&|i| lifetimes[i] > 10_000));
    let short = of(&|i| lives[i].1 - lives[i].0 <= 3);
    assert!(!short.is_empty());
    assert_eq!(opened.chosen("lifetime:<=3 events"), short);
}

#[test]
fn rows_of_a_state_choose_their_blocks() {
    for name in [GPT, "recorded/gpt_late.pickle.gz", "recorded/t29/gpt_small_all.pickle.gz"] {
        let mut opened = open(name);
        let Answer::StateAt(state) = opened.ask(Query::Peak {}) else { panic!("a state") };
        for row in &state.categories {
            let found = opened.found(&format!("category:{}", row.name.name()));
            assert_eq!(number(&found.bytes), number(&row.bytes), "{name}: {row:?}");
        }
        let mut sums: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        for row in &state.stacks {
            *sums.entry(row.terms.clone()).or_default() += number(&row.bytes);
        }
        for (terms, bytes) in sums {
            let text: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
            let found = opened.found(&text.join(" "));
            assert_eq!(found.terms, terms);
            assert!(number(&found.bytes) >= bytes, "{name}: {terms:?}");
        }
    }
}

#[test]
fn nodes_of_a_flame_graph_choose_their_blocks() {
    for name in [GPT, "recorded/t29/gpt_small_all.pickle.gz"] {
        let mut opened = open(name);
        for (inverted, hide_framework) in [(false, true), (true, true), (false, false)] {
            let flame = FlameSpec { inverted, hide_framework, ..FlameSpec::default() };
            let (mut open, mut checked) = (vec![0], 0);
            while let Some(node) = open.pop() {
                let query = Query::FlameNode { flame: flame.clone(), node };
                let Answer::FlameNode(Some(found)) = opened.ask(query) else { panic!("a node") };
                open.extend(found.child);
                open.extend(found.behind);
                if found.terms.is_empty() || checked == 40 {
                    continue;
                }
                assert!(node > 0);
                let term = format!("\"{}\"", found.terms[0]);
                assert_eq!(number(&opened.found(&term).bytes), number(&found.total), "{term}");
                checked += 1;
            }
            assert!(checked > 10, "{name}: {checked}");
        }
    }
}

#[test]
fn a_group_has_the_sums_of_its_blocks() {
    let mut opened = open(GPT);
    for text in ["category:activation", "site:gpt.py:43", "forward >1MiB", "phase:optimizer"] {
        let chosen = opened.chosen(text);
        assert!(!chosen.is_empty(), "{text}");
        let cursor = 1000i64;
        let card = opened.group(text, Some(cursor)).expect("valid");
        let at = opened.report();
        let trace = at.trace();
        let (peak_slot, end) = (slot_of(trace.requested_band.peak_event), trace.slots() - 1);
        let bytes = |slot| live_bytes(at, &chosen, slot);
        let most = (0..=end).map(bytes).max().expect("slots");
        let sizes = chosen.iter().map(|&i| trace.blocks[i as usize].bytes.0 as i64);
        let is_at_peak = bytes(peak_slot) > 0;
        let title = if is_at_peak { bytes(peak_slot) } else { most };
        for (key, expected) in [
            ("cursor", bytes(cursor as u32 + 1)),
            ("most", most),
            ("end", bytes(end)),
            ("allocated", sizes.clone().sum()),
            ("largest", sizes.max().expect("blocks")),
        ] {
            let has_row = card.rows.iter().any(|row| row.key == key);
            let is_said = !["cursor", "end"].contains(&key) && expected == title;
            assert_eq!(has_row, !is_said, "{text}: {key}");
            if has_row {
                assert_eq!(value(&card.rows, key), expected, "{text}: {key}");
            }
        }
        assert_eq!(number(&card.title), title, "{text}");
        assert_eq!(number(&card.blocks), chosen.len() as i64, "{text}");
        let note = if is_at_peak { "at the peak, " } else { "most at once, #" };
        assert!(card.note.starts_with(note), "{text}: {}", card.note);
        let categories = at.entry.categories(at.index);
        let of: std::collections::BTreeSet<&str> =
            chosen.iter().map(|&i| categories.get(i).category.name()).collect();
        let rows: std::collections::BTreeSet<&str> =
            card.categories.iter().map(|row| row.name.name()).collect();
        assert_eq!(rows, of, "{text}: all categories");
        let sum: i64 = card.categories.iter().map(|row| number(&row.bytes)).sum();
        assert_eq!(sum, title, "{text}: categories add up");
        if card.more.is_empty() {
            let sum: i64 = card.sites.iter().map(|row| number(&row.bytes)).sum();
            assert_eq!(sum, title, "{text}: call sites add up");
        }
        assert!(card.copy.starts_with(&format!("{}\n", opened.found(text).terms.join(" · "))));
        // The flame graph sums the same blocks.
        let flame = FlameSpec { search: text.into(), ..FlameSpec::default() };
        let Answer::Flame(info) = opened.ask(Query::Flame { flame }) else { panic!("a graph") };
        let matched = info.matched.expect("a search");
        assert_eq!(number(&matched), live_bytes(opened.report(), &chosen, peak_slot), "{text}");
    }
    assert!(opened.group("", None).is_none() && opened.group("step:x", None).is_none());
    let none = opened.group("category:cache", None).expect("valid");
    assert_eq!((number(&none.title), none.sites.len(), none.steps.is_empty()), (0, 0, false));
}

#[test]
fn hits_are_grouped_by_call_site() {
    let mut opened = open(GPT);
    let found = opened.found("forward >100KiB");
    let report = peak(opened.report(), BandKind::Requested, None);
    let total: i64 = found.sites.iter().map(|row| number(&row.bytes)).sum();
    assert_eq!((total, found.more.as_str()), (number(&found.bytes), ""));
    assert!(found.sites.len() > 2 && total <= report.total as i64);
    assert!(found.sites.is_sorted_by_key(|row| Reverse(row.bytes.value)));
    let blocks: i64 = found.sites.iter().map(|row| number(&row.blocks)).sum();
    assert_eq!(blocks, number(&found.blocks));
    for row in &found.sites {
        let term = format!("\"{}\" forward >100KiB", row.terms[0]);
        let of_site = opened.found(&term);
        assert_eq!((of_site.blocks, of_site.bytes), (row.blocks.clone(), row.bytes.clone()));
        let largest = opened.report().trace().blocks[row.block as usize].bytes;
        assert_eq!(row.note, format!("largest {largest}"));
    }
    // More call sites than rows are counted.
    let all = opened.found(">=0");
    assert!(all.sites.len() == 12 && all.more.starts_with("and "), "{}", all.more);
}

#[test]
fn events_of_chosen_blocks_match() {
    let mut opened = open(GPT);
    let text = "category:gradient";
    let chosen = opened.chosen(text);
    let events: std::collections::BTreeSet<u32> = {
        let trace = opened.report().trace();
        let of = |&i: &u32| {
            let block = &trace.blocks[i as usize];
            [block.alloc_event(), block.free_requested(), block.free_completed()]
        };
        chosen.iter().flat_map(of).flatten().map(|event| event.0).collect()
    };
    let page = opened.events(&filter(&[], text), 0, 500, None);
    assert_eq!(page.total as usize, events.len());
    let rows: Vec<u32> = page.rows.iter().map(|row| row.record.index.0).collect();
    assert_eq!(rows, events.into_iter().take(500).collect::<Vec<_>>());
}

#[test]
fn details_and_tooltips_name_the_category_the_call_site_and_the_step() {
    let mut opened = open(GPT);
    // The context comes with the first answer about the peak.
    let _ = opened.ask(Query::Peak {});
    let file = load_file(GPT);
    let at = report_target(&file);
    let report = now(async |budget| phases(at, None, budget).await);
    let (trace, peak_slot) = (at.trace(), slot_of(at.trace().requested_band.peak_event));
    let sites: Vec<String> = trace.blocks.iter().map(|block| block_site(at, block)).collect();
    let is_live = |i: usize| trace.blocks[i].is_live_at(peak_slot);
    let (mut in_steps, mut freed) = (0, 0);
    for index in (0..trace.blocks.len()).step_by(53) {
        let block = &trace.blocks[index];
        let of = |key: &str, rows: &[vramscope_session::messages::DetailRow]| {
            rows.iter().find(|row| row.key == key).map(|row| row.text.clone())
        };
        let hit = super::harness::hit(&mut opened, index as u32).expect("a block");
        let detail = opened.detail(index as u32);
        let same: Vec<usize> = (0..sites.len()).filter(|&i| sites[i] == sites[index]).collect();
        let live: Vec<usize> = same.iter().copied().filter(|&i| is_live(i)).collect();
        let (group, when) = if is_live(index) { (&live, "at the peak") } else { (&same, "in all") };
        let bytes: u64 = group.iter().map(|&i| trace.blocks[i].bytes.0).sum();
        let count = if group.len() == 1 {
            "1 block".to_owned()
        } else {
            format!("{} blocks", vramscope_units::grouped(group.len() as u64))
        };
        let expected =
            format!("{}: 1 of {count}, {} {when}", sites[index], vramscope_units::Bytes(bytes));
        assert_eq!(of("site", &detail.rows), Some(expected));
        assert_eq!(detail.terms, [format!("site:{}", sites[index])]);
        assert_eq!(of("peak_share", &detail.rows).is_some(), is_live(index));
        let category = of("category", &detail.rows).expect("a category");
        let step = block.alloc_event().and_then(|event| {
            report.steps.iter().find(|step| step.begin <= event.0 && event.0 < step.end)
        });
        if let Some(step) = step {
            in_steps += 1;
            let place = of("place", &detail.rows).expect("a place");
            assert!(place.starts_with(&format!("step {}, ", step.step)), "{place}");
            assert!(hit.lines[0].ends_with(&place), "{:?}", hit.lines);
        }
        if !category.starts_with("unknown:") {
            assert!(hit.lines[0].starts_with(&category), "{:?} {category}", hit.lines);
        }
        if is_live(index) {
            assert!(hit.lines[1].contains(" % of the peak"), "{:?}", hit.lines);
        }
        freed += usize::from(of("freed_by", &detail.rows).is_some());
    }
    assert!(in_steps > 10 && freed > 10, "{in_steps} {freed}");
}
