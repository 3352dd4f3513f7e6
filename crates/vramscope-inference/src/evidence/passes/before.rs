//! The same place of the pass before.

use super::{Pass, PassKind, Passes};
use std::ops::RangeInclusive;
use vramscope_trace::{Block, Trace};

/// A state at the same place of an earlier pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Earlier<'a> {
    /// The slot of the state.
    pub slot: u32,
    /// The pass that it is in.
    pub pass: &'a Pass,
}

impl Passes {
    /// The index of the pass that an event is in, with what follows it up to the next one; `None`
    /// before the first.
    pub fn of_event(&self, event: u32) -> Option<usize> {
        self.all.partition_point(|pass| pass.lead <= f64::from(event)).checked_sub(1)
    }

    /// The state at the same place of the last pass before that is of the same kind: after as many
    /// requests of the same call stack. If that pass has fewer of them, its largest state.
    ///
    /// A pass that the window cuts off is of the kind of the last one that has its call stack.
    pub fn before(&self, trace: &Trace, slot: u32) -> Option<Earlier<'_>> {
        let event = slot.checked_sub(1)?;
        let at = self.of_event(event)?;
        let range = |index: usize| {
            let end = self.all.get(index + 1).map_or(u32::MAX, |next| next.lead.ceil() as u32);
            let begin = self.all[index].lead.max(0.0).ceil() as u32;
            begin + 1..=end.min(trace.slots() - 1)
        };
        let own = *range(at).start()..=slot;
        let stack = made(trace, own.clone()).last()?.stack;
        let nth = made(trace, own).filter(|block| block.stack == stack).count();
        let is_cut_off = at + 1 == self.all.len();
        let like = |index: &usize| {
            let mut made = made(trace, range(*index));
            self.all[*index].kind == self.all[at].kind
                || is_cut_off && made.any(|block| block.stack == stack)
        };
        let earlier = (0..at).rev().find(like)?;
        let mut of_stack = made(trace, range(earlier)).filter(|block| block.stack == stack);
        let slot = match of_stack.nth(nth - 1) {
            Some(block) => block.enters,
            None => trace.requested.largest(*range(earlier).start()..range(earlier).end() + 1)?.0,
        };
        Some(Earlier { slot, pass: &self.all[earlier] })
    }
}

/// The blocks that enter in a range of slots.
fn made(trace: &Trace, slots: RangeInclusive<u32>) -> impl Iterator<Item = &Block> {
    let first = trace.blocks.partition_point(|block| block.enters < *slots.start());
    trace.blocks[first..].iter().take_while(move |block| block.enters <= *slots.end())
}

impl Earlier<'_> {
    /// When that was, in words: `in step 3`, `one pass before`.
    pub fn words(&self) -> String {
        let is_step = self.pass.kind == PassKind::Step && self.pass.step >= 0;
        format!("{}{}", if is_step { "in " } else { "" }, self.name())
    }

    /// As the head of a column: `step 3`, `one pass before`.
    pub fn name(&self) -> String {
        match self.pass.kind {
            PassKind::Step if self.pass.step >= 0 => format!("step {}", self.pass.step),
            PassKind::MicroBatch => "one micro-batch before".to_owned(),
            _ => "one pass before".to_owned(),
        }
    }
}
