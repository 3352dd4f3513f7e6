//! The two ways along a trace, in slots.
//!
//! On the event axis slot 0 is the state before the window and slot `i + 1` the state after event
//! `i`. On the time axis a slot is a microsecond; a lead before the first event shows the state
//! before the window, and the same length after the last event shows the state that it left.

use std::ops::Range;
use vramscope_analysis::Trace;

/// One way along a trace.
#[derive(Clone, Copy)]
pub struct Axis<'a> {
    trace: &'a Trace,
    kind: Kind,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// By event.
    Event,
    /// By time.
    Time,
}

impl<'a> Axis<'a> {
    /// The axis, if the trace has it: one without a clock has no time axis.
    pub fn new(trace: &'a Trace, kind: Kind) -> Option<Self> {
        (kind == Kind::Event || trace.clock.is_some()).then_some(Self { trace, kind })
    }

    /// The trace.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// Slots on it.
    pub fn extent(&self) -> u64 {
        match &self.trace.clock {
            Some(clock) if self.kind == Kind::Time => clock.span() + 2 * self.lead(),
            _ => u64::from(self.trace.slots()),
        }
    }

    /// The slot that is labelled zero: that of event 0, or of the window's first microsecond.
    pub fn origin(&self) -> u64 {
        if self.kind == Kind::Time { self.lead() } else { 1 }
    }

    /// Slots before the window and after it on the time axis: a sixty-fourth of its length.
    fn lead(&self) -> u64 {
        self.trace.clock.as_ref().map_or(1, |clock| (clock.span() >> 6).max(1))
    }

    /// The first slot of a state (0 before the window, `i + 1` after event `i`).
    pub fn slot_of(&self, state: u32) -> u64 {
        match (&self.trace.clock, self.kind, state) {
            (Some(clock), Kind::Time, 1..) if state < self.trace.slots() => {
                clock.offset(state - 1) + self.lead()
            }
            (Some(_), Kind::Time, 1..) => self.extent(),
            (Some(_), Kind::Time, 0) => 0,
            _ => u64::from(state),
        }
    }

    /// The state that fills a slot's end: the last one that has begun by then.
    pub fn state_at(&self, slot: u64) -> u32 {
        match (&self.trace.clock, self.kind) {
            (Some(_), Kind::Time) if slot < self.lead() => 0,
            (Some(clock), Kind::Time) => clock.events_before(slot - self.lead() + 1),
            _ => slot.min(u64::from(self.trace.slots()) - 1) as u32,
        }
    }

    /// The states that a column of slots shows: those that begin in it, and the one that it begins
    /// in unless another begins with it. Empty only beyond the axis's end.
    pub fn states_in(&self, slots: Range<u64>) -> Range<u32> {
        if slots.start >= self.extent() || slots.is_empty() {
            return 0..0;
        }
        let last = self.state_at(slots.end - 1);
        let first = if slots.start == 0 { 0 } else { self.state_at(slots.start - 1) };
        // The state before the column lasts into it, unless the next one begins on the column's
        // first slot.
        let first = if slots.start > 0 && first < last && self.slot_of(first + 1) == slots.start {
            first + 1
        } else {
            first
        };
        first..last + 1
    }
}
