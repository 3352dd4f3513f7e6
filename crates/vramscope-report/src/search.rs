//! Search: which blocks and events match a text.
//!
//! A search consists of terms between spaces; quotes hold a term with spaces together. A block
//! matches when all terms hold. Of terms with one key, such as `category:`, one must hold.
//!
//! | term | blocks |
//! |---|---|
//! | a word | some frame of the stack, the tensor's name, metadata or an annotation contains it |
//! | `0x7f..`, nine and more hexadecimal digits | at or around an address, or below a prefix |
//! | `>512MiB`, `size:<=1KiB`, `512 MiB` | by requested bytes |
//! | `#3702` | allocated or freed by an event |
//! | `live@peak`, `live@start`, `live@end`, `live@#3702` | live at a moment |
//! | `site:gpt.py:43`, `site:gpt.py:43 forward` | by call site, as tables spell it |
//! | `via:adam.py:183` | some frame of the stack is this one |
//! | `via:/train/gpt.py:43`, `site:/train/gpt.py forward` | by the path of the file |
//! | `path:a.py:1 main › b.py:2 run` | the outermost frames of the stack; `leaf:` the innermost |
//! | `path:› a.py:1 main` | the same, and no frames of the framework lie between |
//! | `stack:c65c1b32de31d67b` | by call stack: its id; the first 8 digits are enough |
//! | `category:activation` | by category |
//! | `module:gpt.py:26 forward`, `module:layers / 3 / mlp` | by module, as its table spells it |
//! | `holder:losses`, `holder:self.history` | by what holds it at the end, as its table spells it |
//! | `phase:backward`, `step:3`, `step:3-5` | by the phase and step of the alloc |
//! | `stream:0`, `pool:private`, `pool:small`, `rank:3` | by place |
//! | `lifetime:>10ms`, `lifetime:<100 events` | by lifetime |

mod resolve;
mod terms;
mod words;

use self::resolve::Test;
use self::terms::parse;
pub use self::terms::{STEP, WHOLE};
use self::words::Words;
use crate::{Quantity, Target};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::grouped;

/// A parsed search.
pub struct Matcher {
    /// The words of each stack, and of each text about a block; `None` without words.
    words: Option<Words>,
    /// Of each inner list, one test must hold.
    groups: Vec<Vec<Test>>,
    /// Whether each event is one of a matching block. Empty unless only blocks can tell.
    events: Vec<bool>,
    /// Each term as it is written, without quotes.
    pub texts: Vec<String>,
}

impl Matcher {
    /// Parses a search; `None` when the text is empty or cannot be parsed.
    pub async fn new(at: Target<'_>, text: &str, budget: &mut Budget) -> Option<Self> {
        let parsed = parse(text)?;
        let words = if parsed.words.is_empty() {
            None
        } else {
            Some(Words::find(at, &parsed.words, budget).await?)
        };
        let mut groups = Vec::with_capacity(parsed.groups.len());
        for terms in parsed.groups {
            let mut tests = Vec::with_capacity(terms.len());
            for term in terms {
                tests.push(Test::new(at, term, budget).await);
            }
            groups.push(tests);
        }
        Some(Self { words, groups, events: Vec::new(), texts: parsed.texts })
    }

    /// Parses the search of a table; `None` for all rows.
    ///
    /// # Errors
    /// A message when the text cannot be parsed. Such a table is empty.
    pub async fn of_table(
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

    /// [`Matcher::of_table`] for events. Terms about blocks match all events of the blocks.
    ///
    /// # Errors
    /// As [`Matcher::of_table`].
    pub async fn of_events(
        at: Target<'_>,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Option<Self>, String> {
        let Some(mut matcher) = Self::of_table(at, text, budget).await? else { return Ok(None) };
        if matcher.groups.iter().flatten().any(Test::is_of_blocks) {
            let trace = at.trace();
            let mut events = vec![false; trace.device.events.len()];
            for part in strides(trace.blocks.len()) {
                budget.charge(3 * part.len() as u64).await;
                for index in part {
                    if matcher.block(at, index as u32) {
                        let block = &trace.blocks[index];
                        let of_block =
                            [block.alloc_event(), block.free_requested(), block.free_completed()];
                        for event in of_block.into_iter().flatten() {
                            events[event.0 as usize] = true;
                        }
                    }
                }
            }
            matcher.events = events;
        }
        Ok(Some(matcher))
    }

    /// Whether a block matches.
    pub fn block(&self, at: Target<'_>, index: u32) -> bool {
        let Some(block) = at.trace().blocks.get(index as usize) else { return false };
        self.words.as_ref().is_none_or(|words| words.block(at, index, block.stack))
            && self.groups.iter().all(|any| any.iter().any(|test| test.block(at, index, block)))
    }

    /// Whether an event matches by its stack, address, size and index, or by its block.
    pub fn event(&self, at: Target<'_>, event: u32) -> bool {
        let range = &at.trace().device.events;
        if event as usize >= range.len() {
            return false;
        }
        if let Some(&matches) = self.events.get(event as usize) {
            return matches;
        }
        self.words.as_ref().is_none_or(|words| words.event(at, range.start + event))
            && self.groups.iter().all(|any| any.iter().any(|test| test.event(at, event)))
    }
}

/// A term as a search has it: in quotes if it has spaces.
pub fn quoted(term: &str) -> String {
    if term.contains(' ') { format!("\"{term}\"") } else { term.to_owned() }
}

/// The only word of a search, in lower case; `None` if the search has other terms.
pub fn only_word(text: &str) -> Option<String> {
    let parsed = parse(text)?;
    let [word] = <[String; 1]>::try_from(parsed.words).ok()?;
    parsed.groups.is_empty().then_some(word)
}

/// The blocks of a matcher, ascending.
pub async fn matching(at: Target<'_>, matcher: &Matcher, budget: &mut Budget) -> Vec<u32> {
    let mut found = Vec::new();
    for part in strides(at.trace().blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        found.extend(part.map(|i| i as u32).filter(|&i| matcher.block(at, i)));
    }
    found
}

/// `12 of 2,443 blocks`, or `2,443 blocks` when all rows match.
pub fn count_of_total(found: usize, all: usize, one: &str, many: &str) -> String {
    let total = Quantity::count(all as u64, one, many).exact;
    if found == all { total } else { format!("{} of {total}", grouped(found as u64)) }
}
