//! Where the words of a search occur: in frames of stacks, and in texts of the program about
//! blocks.

use crate::Target;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Events, FrameId, StackId, StrId};
use vramscope_trace::Notes;
use vramscope_trace::slicing::{Budget, STRIDE, strides};

/// The words that occur at each place, as bits.
pub(crate) struct Words {
    /// All words of the search.
    pub(crate) all: u64,
    /// The words in some frame of each stack, by stack.
    pub(crate) stacks: Vec<u64>,
    /// The words in each text of the program, if any.
    texts: FxHashMap<StrId, u64>,
    /// The words in the name of each block's tensor, if any.
    tensors: FxHashMap<u32, u64>,
}

impl Words {
    /// Finds the words; `None` if there are more than 64.
    pub(crate) async fn find(
        at: Target<'_>,
        words: &[String],
        budget: &mut Budget,
    ) -> Option<Self> {
        let all = u64::MAX >> 64usize.checked_sub(words.len())?;
        let snapshot = at.snapshot();
        let bits = |text: &str| -> u64 {
            words
                .iter()
                .enumerate()
                .filter(|(_, word)| text.contains(word.as_str()))
                .map(|(i, _)| 1 << i)
                .sum()
        };
        // A frame occurs in many stacks, so each frame is formatted once.
        let frame = |id: usize| {
            let frame = snapshot.frame(FrameId(id as u32));
            let line = if frame.line == 0 { String::new() } else { format!(":{}", frame.line) };
            let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
            bits(&format!("{name} {file}{line}").to_ascii_lowercase())
        };
        let mut frames: Vec<u64> = Vec::with_capacity(snapshot.frames.len());
        for part in strides(snapshot.frames.len()) {
            budget.charge((32 + 8 * words.len() as u64) * part.len() as u64).await;
            frames.extend(part.map(frame));
        }
        let mut stacks: Vec<u64> = Vec::with_capacity(snapshot.stacks.len());
        for part in strides(snapshot.stacks.len()) {
            budget.charge(32 * part.len() as u64).await;
            stacks.extend(part.map(|id| {
                let stack = snapshot.stacks.frames(StackId(id as u32));
                stack.iter().fold(0, |bits, f| bits | frames[f.0 as usize])
            }));
        }
        let mut texts: FxHashMap<StrId, u64> = FxHashMap::default();
        for part in snapshot.events.user_metadata.chunks(STRIDE) {
            budget.charge(8 * part.len() as u64).await;
            for &(_, text) in part {
                texts
                    .entry(text)
                    .or_insert_with(|| bits(&snapshot.text(text).to_ascii_lowercase()));
            }
        }
        texts.retain(|_, bits| *bits != 0);
        let named = at.entry.tensors(at.index);
        let mut tensors: FxHashMap<u32, u64> = FxHashMap::default();
        if !named.is_empty() {
            for part in strides(at.trace().blocks.len()) {
                budget.charge(part.len() as u64).await;
                let of =
                    |block: u32| Some((block, bits(&named.get(&block)?.name.to_ascii_lowercase())));
                tensors.extend(part.filter_map(|block| of(block as u32)));
            }
        }
        Some(Self { all, stacks, texts, tensors })
    }

    /// Whether a block has all words, in its stack and the texts about it.
    pub(crate) fn block(&self, at: Target<'_>, block: u32, stack: StackId) -> bool {
        let tensor = self.tensors.get(&block).copied().unwrap_or(0);
        let found = self.stacks[stack.0 as usize] | tensor;
        if found == self.all || self.texts.is_empty() {
            return found == self.all;
        }
        let metadata = Notes::metadata(at.snapshot(), at.trace(), block);
        let texts = metadata.into_iter().chain(at.entry.notes(at.index).annotations(block));
        texts.fold(found, |found, text| found | self.of(text)) == self.all
    }

    /// Whether the event in a row has all words, in its stack and its text.
    pub(crate) fn event(&self, at: Target<'_>, row: u32) -> bool {
        let events = &at.snapshot().events;
        let text = Events::sparse(&events.user_metadata, row);
        let found = self.stacks[events.stack(row).0 as usize];
        found | text.map_or(0, |text| self.of(text)) == self.all
    }

    fn of(&self, text: StrId) -> u64 {
        self.texts.get(&text).copied().unwrap_or(0)
    }
}
