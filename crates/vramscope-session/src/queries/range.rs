//! What happens between two places of the trace.

use super::disambiguate;
use super::events::site;
use super::tiles::layout_axis;
use std::cmp::Reverse;
use std::fmt::Write as _;
use vramscope_analysis::Trace;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_layout::site_color;
use vramscope_protocol::DetailRow;
use vramscope_protocol::views::{DetailCard, MarkedRange, StackShareRow};
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, event_of};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, EventIndex};

/// How many call stacks are listed.
const STACKS: usize = 50;

/// What is allocated and freed after the state that is shown at the left edge, up to the one at the
/// right edge.
///
/// It counts as the curve of requested bytes does, by when blocks enter and leave: what a lost free
/// ends is freed there.
pub(crate) async fn range(
    at: Target<'_>,
    marked: &MarkedRange,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let trace = at.trace();
    let (from, to) = states(trace, marked)?;
    let is_in = |slot: u32| from < slot && slot <= to;
    let (mut allocated, mut freed, mut survived) = (Sum::default(), Sum::default(), Sum::default());
    let mut shares = Shares::new(at, to);
    for part in strides(trace.blocks.len()) {
        budget.charge(3 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            if is_in(block.enters) {
                shares.add(i);
                allocated.add(block.bytes);
                if block.leaves > to {
                    survived.add(block.bytes);
                }
            }
            if is_in(block.leaves) {
                freed.add(block.bytes);
            }
        }
    }
    let shares = shares.finish();
    let requested = |slot: u32| trace.requested.at(slot);
    let peak = peak_of(trace, (from, to), budget).await;
    let row = |key: &str, label: &str, text: String, raw: String| DetailRow {
        key: key.to_owned(),
        label: label.to_owned(),
        text,
        raw: Some(raw),
    };
    let place = |slot: u32| place(trace, slot);
    let rows = vec![
        row("from", "from", place(from), event_of(from).to_string()),
        row("to", "to", place(to), event_of(to).to_string()),
        row("allocated", "allocated", allocated.text(), allocated.bytes.to_string()),
        row("freed", "freed", freed.text(), freed.bytes.to_string()),
        row("survived", "of the allocated, kept", survived.text(), survived.bytes.to_string()),
        row(
            "peak",
            "peak of requested",
            format!("{}, {}", Bytes(requested(peak)), place(peak)),
            requested(peak).to_string(),
        ),
        row(
            "requested_from",
            "requested at the start",
            Bytes(requested(from)).to_string(),
            requested(from).to_string(),
        ),
        row(
            "requested_to",
            "requested at the end",
            Bytes(requested(to)).to_string(),
            requested(to).to_string(),
        ),
    ];
    let title = change((requested(to) as i64).saturating_sub(requested(from) as i64));
    let note = |share: &Share| match share.kept {
        0 => "all freed again".to_owned(),
        kept => format!("{} kept", Bytes(kept)),
    };
    let stacks = share_rows(at, &shares, STACKS, allocated.bytes, note);
    let heading = if stacks.is_empty() { "" } else { "Allocated in this range, by call stack" };
    Some(card("Range", title, rows, heading, stacks))
}

/// The states, as slots of events, at the edges of a range; `None` where the trace has no such
/// axis.
pub(super) fn states(
    trace: &Trace,
    &MarkedRange { axis, x0, x1 }: &MarkedRange,
) -> Option<(u32, u32)> {
    let axis = layout_axis(trace, axis)?;
    if x0.is_nan() || x1.is_nan() {
        return None;
    }
    let last = (axis.extent() - 1) as f64;
    let state = |x: f64| axis.state_at(x.clamp(0.0, last) as u64);
    let from = state(x0.min(x1).floor());
    // The end of a range is where its last slot ends.
    Some((from, state(x0.max(x1).ceil() - 1.0).max(from)))
}

/// The first of the states from one to another, both included, in which most bytes are requested.
pub(super) async fn peak_of(trace: &Trace, (from, to): (u32, u32), budget: &mut Budget) -> u32 {
    trace.requested.largest_sliced(from..to + 1, budget).await.map_or(from, |(slot, _)| slot)
}

/// Bytes and blocks.
#[derive(Default)]
struct Sum {
    bytes: u64,
    blocks: u64,
}

impl Sum {
    fn add(&mut self, bytes: Bytes) {
        self.bytes = self.bytes.saturating_add(bytes.0);
        self.blocks += 1;
    }

    /// `1.20 GiB, 12 blocks`.
    fn text(&self) -> String {
        format!("{}, {}", Bytes(self.bytes), Quantity::count(self.blocks, "block", "blocks").exact)
    }
}

/// A change, with its sign.
fn change(bytes: i64) -> Quantity {
    let change = Quantity::signed_bytes(bytes);
    if bytes <= 0 {
        return change;
    }
    Quantity { text: format!("+{}", change.text), exact: format!("+{}", change.exact), ..change }
}

/// The event that a slot comes after, with its time.
pub(super) fn place(trace: &Trace, slot: u32) -> String {
    slot.checked_sub(1).map_or_else(
        || "before the window".to_owned(),
        |event| text::event(trace, EventIndex(event)),
    )
}

/// What the blocks of a call stack add up to.
pub(super) struct Share {
    pub(super) stack: StackId,
    /// Whether it is the stack of their frees.
    pub(super) is_of_free: bool,
    pub(super) bytes: u64,
    pub(super) blocks: u32,
    /// Bytes of those that are live after a slot.
    kept: u64,
    /// The largest of them.
    largest: u32,
}

/// Blocks by call stack, and what of them is live in a slot.
pub(super) struct Shares<'a> {
    trace: &'a Trace,
    slot: u32,
    /// Stacks are few: a place for each, and one for each as the stack of a free.
    places: Vec<usize>,
    all: Vec<Share>,
}

impl<'a> Shares<'a> {
    pub(super) fn new(at: Target<'a>, slot: u32) -> Self {
        let places = vec![usize::MAX; 2 * at.snapshot().stacks.len()];
        Self { trace: at.trace(), slot, places, all: Vec::new() }
    }

    pub(super) fn add(&mut self, index: u32) {
        let block = &self.trace.blocks[index as usize];
        let (stack, is_of_free) = (block.stack, block.has_stack_of_free());
        let place = &mut self.places[2 * stack.0 as usize + usize::from(is_of_free)];
        if *place == usize::MAX {
            *place = self.all.len();
            self.all.push(Share {
                stack,
                is_of_free,
                bytes: 0,
                blocks: 0,
                kept: 0,
                largest: index,
            });
        }
        let share = &mut self.all[*place];
        share.bytes = share.bytes.saturating_add(block.bytes.0);
        share.blocks += 1;
        if block.leaves > self.slot {
            share.kept = share.kept.saturating_add(block.bytes.0);
        }
        if block.bytes > self.trace.blocks[share.largest as usize].bytes {
            share.largest = index;
        }
    }

    /// Most bytes first.
    pub(super) fn finish(mut self) -> Vec<Share> {
        self.all.sort_unstable_by_key(|s| (Reverse(s.bytes), s.stack, s.is_of_free));
        self.all
    }
}

/// The largest shares as rows.
pub(super) fn share_rows(
    at: Target<'_>,
    shares: &[Share],
    most: usize,
    whole: u64,
    note: impl Fn(&Share) -> String,
) -> Vec<StackShareRow> {
    let row = |share: &Share| StackShareRow {
        site: site(at, share.stack),
        via: String::new(),
        bytes: Quantity::bytes(Bytes(share.bytes)),
        blocks: Quantity::count(share.blocks.into(), "block", "blocks"),
        share: part_of_whole(share.bytes, whole),
        color: site_color(&at.entry.sites, share.stack).word(),
        block: share.largest,
        note: note(share),
    };
    let listed = &shares[..most.min(shares.len())];
    let mut rows: Vec<_> = listed.iter().map(row).collect();
    let stacks: Vec<_> = listed.iter().map(|share| share.stack).collect();
    disambiguate::tell(at.snapshot(), &mut rows, &stacks);
    rows
}

/// 0 to 1; nothing is no part of nothing.
pub(super) fn part_of_whole(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A card, and all of it as text.
pub(super) fn card(
    kind: &str,
    title: Quantity,
    rows: Vec<DetailRow>,
    heading: &str,
    stacks: Vec<StackShareRow>,
) -> DetailCard {
    let mut copy = format!("{kind}  {}\n", title.exact);
    let mut line = |text: std::fmt::Arguments<'_>| {
        copy.write_fmt(text).expect("a String takes all text");
        copy.push('\n');
    };
    for row in &rows {
        line(format_args!("{}: {}", row.label, row.text));
    }
    if !heading.is_empty() {
        line(format_args!("{heading}:"));
    }
    for stack in &stacks {
        let gap = if stack.note.is_empty() { "" } else { ", " };
        let via = if stack.via.is_empty() { String::new() } else { format!(" ({})", stack.via) };
        let StackShareRow { bytes, site, blocks, note, .. } = stack;
        line(format_args!("  {}  {site}{via}  {}{gap}{note}", bytes.text, blocks.exact));
    }
    DetailCard {
        kind: kind.to_owned(),
        title,
        rows,
        heading: heading.to_owned(),
        stacks,
        stack: None,
        copy,
    }
}
