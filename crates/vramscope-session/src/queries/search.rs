//! Search: which blocks, events and stacks match a text.
//!
//! A search consists of terms between spaces. A block matches when all terms hold. A term is a word
//! that some frame of the stack or a text of the program about the block contains, an address
//! (`0x7f..`), a bound of requested bytes
//! (`>512MiB`) or an event (`#3702`).

mod terms;
mod words;

use self::terms::{Term, parse};
use self::words::Words;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_protocol::views::SearchResult;
use vramscope_report::Quantity;
use vramscope_report::{Target, slot_of};
use vramscope_units::{Bytes, EventIndex, grouped};

/// The number of matching blocks and their bytes at the peak; `None` when the text is empty or
/// cannot be parsed.
pub(crate) async fn search(
    at: Target<'_>,
    text: &str,
    budget: &mut Budget,
) -> Option<SearchResult> {
    let matcher = Matcher::new(at, text, budget).await?;
    let trace = at.trace();
    let peak = slot_of(trace.requested_band.peak_event);
    let (mut blocks, mut bytes) = (0, 0u64);
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            if matcher.block(at, i) {
                blocks += 1;
                if block.enters <= peak && peak < block.leaves {
                    bytes = bytes.saturating_add(block.bytes.0);
                }
            }
        }
    }
    let (blocks, bytes) =
        (Quantity::count(blocks, "block", "blocks"), Quantity::bytes(Bytes(bytes)));
    let text = match blocks.value {
        0 => blocks.exact.clone(),
        _ => format!("{}, {} at the peak", blocks.exact, bytes.text),
    };
    Some(SearchResult { blocks, bytes, text })
}

/// A parsed search.
pub(crate) struct Matcher {
    /// The words of each stack, and of each text about a block; `None` without words.
    words: Option<Words>,
    terms: Vec<Term>,
}

impl Matcher {
    /// Parses a search; `None` when the text is empty or cannot be parsed.
    pub(crate) async fn new(at: Target<'_>, text: &str, budget: &mut Budget) -> Option<Self> {
        let (words, terms) = parse(text)?;
        let words =
            if words.is_empty() { None } else { Some(Words::find(at, &words, budget).await?) };
        Some(Self { words, terms })
    }

    /// Parses the search of a table; `None` for all rows.
    ///
    /// # Errors
    /// A message when the text cannot be parsed. Such a table is empty.
    pub(super) async fn of_table(
        at: Target<'_>,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Option<Self>, String> {
        let text = text.trim();
        match Self::new(at, text, budget).await {
            None if !text.is_empty() => Err(format!(
                "Cannot parse \"{text}\". Search by function, file, address (0x7f..), size \
                 (>512MiB) or event (#3702)."
            )),
            matcher => Ok(matcher),
        }
    }

    /// Whether a block matches.
    pub(crate) fn block(&self, at: Target<'_>, block: u32) -> bool {
        let index = block;
        let Some(block) = at.trace().blocks.get(block as usize) else { return false };
        let is_at = |event: Option<EventIndex>, wanted| event == Some(EventIndex(wanted));
        let holds = |term: &Term| match *term {
            Term::Address(ref address) => {
                address.matches(block.address.0, block.bytes.0) || address.is_reuse(block)
            }
            Term::Size(min, max) => (min..=max).contains(&block.bytes.0),
            Term::Event(event) => {
                is_at(block.alloc_event(), event)
                    || is_at(block.free_requested(), event)
                    || is_at(block.free_completed(), event)
            }
        };
        self.words.as_ref().is_none_or(|words| words.block(at, index, block.stack))
            && self.terms.iter().all(holds)
    }

    /// Whether an event matches by its stack, address, size and index.
    pub(crate) fn event(&self, at: Target<'_>, event: u32) -> bool {
        let range = &at.trace().device.events;
        if event as usize >= range.len() {
            return false;
        }
        let (events, row) = (&at.snapshot().events, range.start + event);
        let (address, size) = (events.addr(row).0, events.size(row).0);
        let holds = |term: &Term| match *term {
            // Events without an address have address 0.
            Term::Address(ref wanted) => address != 0 && wanted.matches(address, size),
            Term::Size(min, max) => (min..=max).contains(&size),
            Term::Event(wanted) => event == wanted,
        };
        self.words.as_ref().is_none_or(|words| words.event(at, row)) && self.terms.iter().all(holds)
    }
}

/// `12 of 2,443 blocks`, or `2,443 blocks` when all rows match.
pub(super) fn count_of_total(found: usize, all: usize, one: &str, many: &str) -> String {
    let total = Quantity::count(all as u64, one, many).exact;
    if found == all { total } else { format!("{} of {total}", grouped(found as u64)) }
}
