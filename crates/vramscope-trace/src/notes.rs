//! Texts that the program attaches to blocks.

use crate::trace::Trace;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, Events, Snapshot, StrId};

/// The texts that a program gave to blocks: `_set_memory_metadata` was in effect at the alloc, or
/// `_annotate_tensor` named the block later.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Blocks and texts of `annotate` events, by block, then event.
    annotations: Vec<(u32, StrId)>,
}

impl Notes {
    /// Finds the block of each `annotate` event of a trace. Takes time linear in events and blocks,
    /// or no time in a trace without such events.
    pub fn new(snapshot: &Snapshot, trace: &Trace) -> Self {
        let mut annotations = Vec::new();
        if !trace.actions.iter().any(|&(action, _)| action == Action::ANNOTATE) {
            return Self { annotations };
        }
        let (events, start) = (&snapshot.events, trace.device.events.start);
        // Events with a text, by address.
        let mut at: FxHashMap<u64, Vec<(u32, StrId)>> = FxHashMap::default();
        for row in trace.device.events.clone() {
            if events.action(row) == Action::ANNOTATE
                && let Some(text) = Events::sparse(&events.user_metadata, row)
            {
                at.entry(events.addr(row).0).or_default().push((row - start, text));
            }
        }
        for (index, block) in (0..).zip(&trace.blocks) {
            let at = at.get(&block.address.0).map_or(&[][..], Vec::as_slice);
            // The state after an event has the block if the event is about it.
            let from = at.partition_point(|&(event, _)| event + 1 < block.enters);
            let until = at.partition_point(|&(event, _)| event + 1 < block.leaves);
            annotations.extend(at[from..until].iter().map(|&(_, text)| (index, text)));
        }
        Self { annotations }
    }

    /// The text that `_set_memory_metadata` had set when the block was allocated.
    pub fn metadata(snapshot: &Snapshot, trace: &Trace, block: u32) -> Option<StrId> {
        let alloc = trace.blocks.get(block as usize)?.alloc_event()?;
        Events::sparse(&snapshot.events.user_metadata, trace.device.events.start + alloc.0)
    }

    /// The texts that `_annotate_tensor` gave to a block, in the order of their events.
    pub fn annotations(&self, block: u32) -> impl Iterator<Item = StrId> {
        let from = self.annotations.partition_point(|&(b, _)| b < block);
        let until = self.annotations.partition_point(|&(b, _)| b <= block);
        self.annotations[from..until].iter().map(|&(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_snapshot::Reader;

    #[test]
    fn a_note_belongs_to_the_block_that_is_live_at_its_address() {
        let json = br#"{"segments": [], "device_traces": [[
            {"action": "alloc", "addr": 512, "size": 1, "user_metadata": "step 1"},
            {"action": "annotate", "addr": 512, "size": 0, "user_metadata": "logits"},
            {"action": "annotate", "addr": 512, "size": 0, "user_metadata": "kept logits"},
            {"action": "annotate", "addr": 1024, "size": 0, "user_metadata": "nothing"},
            {"action": "free_requested", "addr": 512, "size": 1},
            {"action": "free_completed", "addr": 512, "size": 1},
            {"action": "alloc", "addr": 512, "size": 2},
            {"action": "annotate", "addr": 512, "size": 0, "user_metadata": "cache"}]]}"#;
        let mut reader = Reader::default();
        reader.feed(json).expect("JSON of a snapshot");
        let snapshot = reader.finish().expect("a whole snapshot").remove(0).snapshot;
        let trace = &Trace::all(&snapshot)[0];
        let notes = Notes::new(&snapshot, trace);
        let texts = |block| -> Vec<String> {
            notes.annotations(block).map(|text| snapshot.text(text).into_owned()).collect()
        };
        assert_eq!(texts(0), ["logits", "kept logits"]);
        assert_eq!(texts(1), ["cache"]);
        assert_eq!(texts(2), [""; 0]);
        let metadata = |block| Notes::metadata(&snapshot, trace, block).map(|t| snapshot.text(t));
        assert_eq!(metadata(0).as_deref(), Some("step 1"));
        assert_eq!(metadata(1), None);
    }
}
