//! The weight of a flame graph: what it sums, and its unit in texts.

use crate::messages::views::{FlameSpec, FlameWeight};
use crate::queries::range::{peak_of, states};
use vramscope_report::Quantity;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Measure, Trace};
use vramscope_units::{Bytes, EventIndex, grouped};

/// The range of all events.
const ALL_EVENTS: (u32, u32) = (0, u32::MAX);

/// What a graph sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// The measure of a block.
    pub(super) measure: Measure,
    /// The events that count, both included.
    pub(super) events: (u32, u32),
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Bytes,
    Allocations,
    ByteMicros,
    ByteEvents,
}

impl Weight {
    /// The weight of a spec. Finding the peak of a range takes slices.
    pub(super) async fn new(trace: &Trace, spec: &FlameSpec, budget: &mut Budget) -> Self {
        let last = i64::from(trace.slots()) - 1;
        let between = spec.range.and_then(|marked| states(trace, &marked));
        let (measure, unit) = match spec.weight {
            FlameWeight::Peak => {
                let slot = match between {
                    Some(between) => peak_of(trace, between, budget).await,
                    None => trace.requested_band.peak_event.map_or(0, |e| e + 1),
                };
                (Measure::Requested(slot), Unit::Bytes)
            }
            FlameWeight::Cursor => (
                Measure::Requested(spec.event.saturating_add(1).clamp(0, last) as u32),
                Unit::Bytes,
            ),
            FlameWeight::ByteSeconds if trace.clock.is_some() => {
                (Measure::ByteTime, Unit::ByteMicros)
            }
            FlameWeight::ByteSeconds => (Measure::ByteTime, Unit::ByteEvents),
            FlameWeight::Count => (Measure::Count, Unit::Allocations),
            FlameWeight::Churn => (Measure::Churn, Unit::Bytes),
        };
        // State `from` precedes event `from`, and event `to - 1` leads to state `to`.
        let events = match between {
            Some((from, to)) if from < to => (from, to - 1),
            Some(_) => (1, 0),
            None => ALL_EVENTS,
        };
        Self { measure, events, unit }
    }

    /// `1.20 GiB`, `2,431 allocations` or `1.20 GiB·s`.
    pub(super) fn quantity(&self, weight: u128) -> Quantity {
        // Numbers of more than 64 bits are not grouped.
        let whole = u64::try_from(weight).map_or_else(|_| weight.to_string(), grouped);
        let value = i128::try_from(weight).unwrap_or(i128::MAX);
        let bytes = Bytes(u64::try_from(weight).unwrap_or(u64::MAX));
        let (text, exact) = match self.unit {
            Unit::Bytes => return Quantity { value, ..Quantity::bytes(bytes) },
            Unit::Allocations => {
                let exact =
                    format!("{whole} {}", if weight == 1 { "allocation" } else { "allocations" });
                (exact.clone(), exact)
            }
            Unit::ByteMicros if weight < 1_000_000 => {
                (format!("{whole} B·µs"), format!("{whole} B·µs"))
            }
            Unit::ByteMicros => {
                let seconds = Bytes(u64::try_from(weight / 1_000_000).unwrap_or(u64::MAX));
                (format!("{seconds}·s"), format!("{whole} B·µs"))
            }
            Unit::ByteEvents => (format!("{bytes}·events"), format!("{whole} B·events")),
        };
        Quantity { value, text, exact }
    }

    /// The description of the total: `requested bytes live at the peak, #3,737`.
    pub(super) fn text(&self, trace: &Trace, spec: &FlameSpec) -> String {
        let what = match spec.weight {
            FlameWeight::Peak => "requested bytes live at the peak",
            FlameWeight::Cursor => "requested bytes live at the cursor",
            FlameWeight::ByteSeconds if trace.clock.is_some() => {
                "requested bytes × seconds of lifetime"
            }
            FlameWeight::ByteSeconds => "requested bytes × events of lifetime",
            FlameWeight::Count => "allocations",
            FlameWeight::Churn => "requested bytes of all allocations",
        };
        let is_ranged = self.events != ALL_EVENTS;
        match self.measure {
            Measure::Requested(slot) => {
                let of = if is_ranged { " of the range" } else { "" };
                let place = slot
                    .checked_sub(1)
                    .map_or("before the window".to_owned(), |e| EventIndex(e).to_string());
                format!("{what}{of}, {place}")
            }
            _ if !is_ranged => format!("{what} in the window"),
            _ => match self.events {
                (first, last) if first > last => format!("{what} in the range (no events)"),
                (first, last) => {
                    format!("{what} in the range, {} to {}", EventIndex(first), EventIndex(last))
                }
            },
        }
    }
}
