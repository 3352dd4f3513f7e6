//! The details of a marked range: bytes allocated, freed and kept in it.

use super::detail_card::detail_card;
use super::stack_shares::{StackShare, StackShares, share_rows};
use crate::messages::DetailRow;
use crate::messages::views::{DetailCard, MarkedRange};
use vramscope_layout::Axis;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, event_of};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, EventIndex};

/// Call stacks in the list.
const MAX_STACKS: usize = 50;

/// The details of a range: what is allocated and freed after the state at its left edge, up to the
/// state at its right edge. `None` where the trace has no such axis.
///
/// Blocks count as in the curve of requested bytes, by the slots at which they enter and leave. A
/// block whose free was lost counts as freed where its address is allocated again.
pub(crate) async fn range(
    at: Target<'_>,
    marked: &MarkedRange,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let trace = at.trace();
    let (from, to) = states(trace, marked)?;
    let is_in = |slot: u32| from < slot && slot <= to;
    let (mut allocated, mut freed, mut survived) = (Sum::default(), Sum::default(), Sum::default());
    let mut shares = StackShares::new(at, to);
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
    let row = |key: &str, label: &str, text: String, raw: String| {
        DetailRow::new(key, label, text, Some(raw))
    };
    let label = |slot: u32| slot_label(trace, slot);
    let rows = vec![
        row("from", "from", label(from), event_of(from).to_string()),
        row("to", "to", label(to), event_of(to).to_string()),
        row("allocated", "allocated", allocated.text(), allocated.bytes.to_string()),
        row("freed", "freed", freed.text(), freed.bytes.to_string()),
        row(
            "survived",
            "allocated here and still live",
            survived.text(),
            survived.bytes.to_string(),
        ),
        row(
            "peak",
            "peak of requested bytes",
            format!("{}, {}", Bytes(requested(peak)), label(peak)),
            requested(peak).to_string(),
        ),
        row(
            "requested_from",
            "requested bytes at the start",
            Bytes(requested(from)).to_string(),
            requested(from).to_string(),
        ),
        row(
            "requested_to",
            "requested bytes at the end",
            Bytes(requested(to)).to_string(),
            requested(to).to_string(),
        ),
    ];
    let title = change((requested(to) as i64).saturating_sub(requested(from) as i64));
    let note = |share: &StackShare| match share.live_bytes {
        0 => "all freed".to_owned(),
        live => format!("{} still live", Bytes(live)),
    };
    let stacks = share_rows(at, &shares, MAX_STACKS, allocated.bytes, note);
    let heading = if stacks.is_empty() { "" } else { "Allocated in this range, by call stack" };
    Some(detail_card("Range", title, rows, heading, stacks))
}

/// The states at the edges of a range, as slots of the event axis. `None` where the trace has no
/// axis of this kind.
pub(super) fn states(
    trace: &Trace,
    &MarkedRange { axis, x0, x1 }: &MarkedRange,
) -> Option<(u32, u32)> {
    let axis = Axis::new(trace, axis)?;
    if x0.is_nan() || x1.is_nan() {
        return None;
    }
    let last = (axis.extent() - 1) as f64;
    let state = |x: f64| axis.state_at(x.clamp(0.0, last) as u64);
    let from = state(x0.min(x1).floor());
    // A range ends where its last slot ends.
    Some((from, state(x0.max(x1).ceil() - 1.0).max(from)))
}

/// The first slot with the most requested bytes from one slot to another, both included.
pub(super) async fn peak_of(trace: &Trace, (from, to): (u32, u32), budget: &mut Budget) -> u32 {
    trace.requested.largest_sliced(from..to + 1, budget).await.map_or(from, |(slot, _)| slot)
}

/// A sum of bytes, and the number of blocks.
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

/// A change in bytes, with its sign.
fn change(bytes: i64) -> Quantity {
    let change = Quantity::signed_bytes(bytes);
    if bytes <= 0 {
        return change;
    }
    Quantity { text: format!("+{}", change.text), exact: format!("+{}", change.exact), ..change }
}

/// The label of the state in a slot: the event before it, with its time.
pub(super) fn slot_label(trace: &Trace, slot: u32) -> String {
    slot.checked_sub(1).map_or_else(
        || "before the window".to_owned(),
        |event| text::event(trace, EventIndex(event)),
    )
}
