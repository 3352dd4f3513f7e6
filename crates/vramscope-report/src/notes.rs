//! The texts that the program gave to a block.

use crate::target::Target;
use std::borrow::Cow;
use vramscope_trace::Notes;

/// The texts that the program gave to a block.
pub struct BlockNotes<'a> {
    /// The text of `_set_memory_metadata` at the alloc.
    pub metadata: Option<Cow<'a, str>>,
    /// The texts of `_annotate_tensor`, in order.
    pub annotations: Vec<Cow<'a, str>>,
}

/// The texts that the program gave to a block.
pub fn notes(target: Target<'_>, block: u32) -> BlockNotes<'_> {
    let (snapshot, trace) = (target.snapshot(), target.trace());
    let texts = target.entry.notes(target.index).annotations(block);
    BlockNotes {
        metadata: Notes::metadata(snapshot, trace, block).map(|text| snapshot.text(text)),
        annotations: texts.map(|text| snapshot.text(text)).collect(),
    }
}
