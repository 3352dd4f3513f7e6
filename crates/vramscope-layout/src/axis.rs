//! The two x axes of a trace, in slots: by event and by time.
//!
//! On the event axis slot 0 is the state before the window, and slot `i + 1` is the state after
//! event `i`. On the time axis a slot is a microsecond, and more in the parts that [`TimeScale`]
//! cuts. A lead-in before the first event shows the state before the window. A lead-out
//! of equal length shows the state after the last event.

use std::ops::Range;
use vramscope_render::AxisKind;
use vramscope_trace::{Clock, Cut, TimeScale, Trace};

/// An x axis of a trace.
#[derive(Clone, Copy)]
pub struct Axis<'a> {
    trace: &'a Trace,
    kind: AxisKind,
    /// The scale of the time axis; `None` for an even one.
    scale: Option<&'a TimeScale>,
}

impl<'a> Axis<'a> {
    /// An axis of `trace`. `None` for the time axis of a trace without timestamps, and for an axis
    /// of weights.
    pub fn new(trace: &'a Trace, kind: AxisKind) -> Option<Self> {
        let exists = match kind {
            AxisKind::Event => true,
            AxisKind::Time => trace.clock.is_some(),
            AxisKind::Weight => false,
        };
        exists.then_some(Self { trace, kind, scale: Some(&trace.time_scale) })
    }

    /// An axis on which every microsecond is a slot. Axes of several traces can be compared.
    pub fn even(trace: &'a Trace, kind: AxisKind) -> Option<Self> {
        Some(Self { scale: None, ..Self::new(trace, kind)? })
    }

    /// The trace that the axis runs along.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The parts of the time axis that take less room. Empty on other axes.
    pub fn cuts(&self) -> &'a [Cut] {
        self.scale.filter(|_| self.clock().is_some()).map_or(&[], TimeScale::cuts)
    }

    /// Number of slots.
    pub fn extent(&self) -> u64 {
        match self.clock() {
            Some(clock) => self.position(clock.span()) + 2 * self.lead(),
            None => u64::from(self.trace.slots()),
        }
    }

    /// The slot that is labeled 0: that of event 0, or of the window's first microsecond.
    pub fn origin(&self) -> u64 {
        if self.kind == AxisKind::Time { self.lead() } else { 1 }
    }

    /// The clock of a time axis.
    fn clock(&self) -> Option<&'a Clock> {
        self.trace.clock.as_ref().filter(|_| self.kind == AxisKind::Time)
    }

    /// The position of an offset in microseconds from the window's start.
    fn position(&self, offset: u64) -> u64 {
        self.scale.map_or(offset, |scale| scale.position(offset))
    }

    /// Slots of the lead-in and of the lead-out on the time axis: 1/64 of the window each.
    fn lead(&self) -> u64 {
        self.clock().map_or(1, |clock| (self.position(clock.span()) >> 6).max(1))
    }

    /// The slot of an offset in microseconds from the window's start, on the time axis.
    pub fn slot_of_offset(&self, offset: u64) -> u64 {
        self.lead() + self.position(offset)
    }

    /// The first slot of a state. State 0 is before the window, state `i + 1` after event `i`.
    pub fn slot_of(&self, state: u32) -> u64 {
        match (self.clock(), state) {
            (Some(clock), 1..) if state < self.trace.slots() => {
                self.slot_of_offset(clock.offset(state - 1))
            }
            (Some(_), 1..) => self.extent(),
            _ => u64::from(state),
        }
    }

    /// The state at the end of a slot: the last one that begins in or before it.
    pub fn state_at(&self, slot: u64) -> u32 {
        match self.clock() {
            Some(_) if slot < self.lead() => 0,
            Some(clock) => {
                let position = slot - self.lead() + 1;
                let next = self.scale.map_or(position, |scale| scale.offset(position));
                clock.events_before(next)
            }
            None => slot.min(u64::from(self.trace.slots()) - 1) as u32,
        }
    }

    /// The states that a column of slots shows: those that begin in it, and the one that lasts into
    /// it from before. Empty only beyond the end of the axis.
    pub fn states_in(&self, slots: Range<u64>) -> Range<u32> {
        if slots.start >= self.extent() || slots.is_empty() {
            return 0..0;
        }
        let last = self.state_at(slots.end - 1);
        let first = if slots.start == 0 { 0 } else { self.state_at(slots.start - 1) };
        // The state before the column lasts into it, unless the next state begins at the column's
        // first slot.
        let first = if slots.start > 0 && first < last && self.slot_of(first + 1) == slots.start {
            first + 1
        } else {
            first
        };
        first..last + 1
    }
}
