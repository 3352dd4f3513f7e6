//! Which blocks a search finds.
//!
//! A search is made of terms between spaces, all of which must hold: a word that some frame of the
//! stack contains, an address (`0x7f..`), a bound of requested bytes (`>512MiB`) or an event
//! (`#3702`).

use vramscope_analysis::Block;
use vramscope_analysis::slicing::{Budget, STRIDE, strides};
use vramscope_protocol::views::SearchResult;
use vramscope_report::Quantity;
use vramscope_report::{Target, slot_of};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_units::{Bytes, EventIndex, grouped};

/// What a search finds; `None` when it is empty or cannot be understood.
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
        1 => format!("{}, {} of it at the peak", blocks.exact, bytes.text),
        _ => format!("{}, {} of them at the peak", blocks.exact, bytes.text),
    };
    Some(SearchResult { blocks, bytes, text })
}

/// A search that was understood.
pub(crate) struct Matcher {
    /// Whether a stack holds all words, by stack; `None` when no word is looked for.
    stacks: Option<Vec<bool>>,
    terms: Vec<Term>,
}

impl Matcher {
    /// `None` when the text is empty or cannot be understood.
    pub(crate) async fn new(at: Target<'_>, text: &str, budget: &mut Budget) -> Option<Self> {
        let (words, terms) = parse(text)?;
        let stacks =
            if words.is_empty() { None } else { Some(stacks_with(at, &words, budget).await) };
        Some(Self { stacks, terms })
    }

    /// What the search of a table means: `None` for all rows.
    ///
    /// # Errors
    /// A sentence, when it cannot be understood: such a table is empty.
    pub(super) async fn of_table(
        at: Target<'_>,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Option<Self>, String> {
        let text = text.trim();
        match Self::new(at, text, budget).await {
            None if !text.is_empty() => Err(format!(
                "\"{text}\" is not understood: search for a word of a frame or file, an address (0x7f..), a size \
                 (>512MiB) or an event (#3702)"
            )),
            matcher => Ok(matcher),
        }
    }

    /// Whether a block is found, by its index.
    pub(crate) fn block(&self, at: Target<'_>, block: u32) -> bool {
        let Some(block) = at.trace().blocks.get(block as usize) else { return false };
        let is_at = |event: Option<EventIndex>, wanted| event == Some(EventIndex(wanted));
        let holds = |term: &Term| match *term {
            Term::Address(ref address) => {
                address.is_in(block.address.0, block.bytes.0) || address.is_use(block)
            }
            Term::Size(least, most) => (least..=most).contains(&block.bytes.0),
            Term::Event(event) => {
                is_at(block.alloc_event(), event)
                    || is_at(block.free_requested(), event)
                    || is_at(block.free_completed(), event)
            }
        };
        (self.stacks.is_none() || self.stack(block.stack)) && self.terms.iter().all(holds)
    }

    /// Whether an event is found: its stack, its address, or its size.
    pub(crate) fn event(&self, at: Target<'_>, event: u32) -> bool {
        let range = &at.trace().device.events;
        if event as usize >= range.len() {
            return false;
        }
        let (events, row) = (&at.snapshot().events, range.start + event);
        let (address, size) = (events.addr(row).0, events.size(row).0);
        let holds = |term: &Term| match *term {
            // Where there is no address, 0 stands.
            Term::Address(ref wanted) => address != 0 && wanted.is_in(address, size),
            Term::Size(least, most) => (least..=most).contains(&size),
            Term::Event(wanted) => event == wanted,
        };
        (self.stacks.is_none() || self.stack(events.stack(row))) && self.terms.iter().all(holds)
    }

    /// Whether a stack holds the word that is looked for.
    pub(crate) fn stack(&self, stack: StackId) -> bool {
        self.stacks.as_ref().is_some_and(|found| found[stack.0 as usize])
    }
}

/// Whether each stack has every word in some frame. Frames are far fewer than the places in stacks
/// where they stand, so each frame is written out once.
async fn stacks_with(at: Target<'_>, words: &[String], budget: &mut Budget) -> Vec<bool> {
    let snapshot = at.snapshot();
    let written = |id: usize| {
        let frame = snapshot.frame(FrameId(id as u32));
        let line = if frame.line == 0 { String::new() } else { format!(":{}", frame.line) };
        let mut text = format!("{} {}{line}", snapshot.text(frame.name), snapshot.text(frame.file));
        text.make_ascii_lowercase();
        text
    };
    let mut frames: Vec<String> = Vec::with_capacity(snapshot.frames.len());
    for part in strides(snapshot.frames.len()) {
        budget.charge(32 * part.len() as u64).await;
        frames.extend(part.map(written));
    }
    let mut found = vec![true; snapshot.stacks.len()];
    for word in words {
        let mut has: Vec<bool> = Vec::with_capacity(frames.len());
        for part in frames.chunks(STRIDE) {
            budget.charge(8 * part.len() as u64).await;
            has.extend(part.iter().map(|frame| frame.contains(word.as_str())));
        }
        for part in strides(found.len()) {
            budget.charge(32 * part.len() as u64).await;
            for (id, found) in (part.start as u32..).zip(&mut found[part]) {
                *found =
                    *found && snapshot.stacks.frames(StackId(id)).iter().any(|f| has[f.0 as usize]);
            }
        }
    }
    found
}

/// What is no word.
enum Term {
    Address(Address),
    /// The least and the most requested bytes.
    Size(u64, u64),
    Event(u32),
}

/// An address that was typed: the whole of one, the beginning of one, or one with its number of
/// use.
struct Address {
    /// `None` when only [`Address::reused`] makes sense.
    plain: Option<u64>,
    digits: u32,
    /// `0x7600_2a00_0000_3` is the fourth block of the window at its address.
    reused: Option<(u64, u32)>,
}

impl Address {
    /// Whether memory holds it, or begins at an address that begins with it.
    fn is_in(&self, start: u64, bytes: u64) -> bool {
        let Some(value) = self.plain else { return false };
        let digits = (u64::BITS - start.leading_zeros()).div_ceil(4).max(1);
        let begins = self.digits <= digits && start >> (4 * (digits - self.digits)) == value;
        begins || value.checked_sub(start).is_some_and(|offset| offset < bytes)
    }

    fn is_use(&self, block: &Block) -> bool {
        self.reused == Some((block.address.0, block.reuse()))
    }
}

/// Words in lower case, and the other terms.
fn parse(text: &str) -> Option<(Vec<String>, Vec<Term>)> {
    let (mut words, mut terms) = (Vec::new(), Vec::new());
    let mut parts = text.split_whitespace().peekable();
    while let Some(part) = parts.next() {
        let mut part = part.to_ascii_lowercase();
        if matches!(part.as_str(), ">" | ">=" | "<" | "<=" | "=") {
            part.push_str(&parts.next()?.to_ascii_lowercase());
        }
        // `<module>` and `<lambda>` are names of Python's, no bounds.
        let is_name = part
            .strip_prefix('<')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
        if part.starts_with(['>', '<', '=']) && !is_name {
            if part.ends_with(|c: char| c.is_ascii_digit())
                && let Some(unit) =
                    parts.next_if(|next| shift_of(&next.to_ascii_lowercase()).is_some())
            {
                part.push_str(&unit.to_ascii_lowercase());
            }
            terms.push(size(&part)?);
        } else if let Some(event) = part.strip_prefix('#') {
            terms.push(Term::Event(event.replace(',', "").parse().ok()?));
        } else if let Some(digits) = part.strip_prefix("0x") {
            terms.push(Term::Address(address(digits)?));
        } else {
            words.push(part);
        }
    }
    (!words.is_empty() || !terms.is_empty()).then_some((words, terms))
}

fn address(digits: &str) -> Option<Address> {
    let value = |digits: &str| {
        let digits = digits.replace('_', "");
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u64::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
        Some((value, digits.len() as u32))
    };
    let plain = value(digits);
    // Groups have four digits; what follows the last of them is the number of use.
    let reused = digits.rsplit_once('_').filter(|(_, reuse)| reuse.len() < 4);
    let reused = reused.and_then(|(start, reuse)| Some((value(start)?.0, reuse.parse().ok()?)));
    (plain.is_some() || reused.is_some()).then(|| Address {
        plain: plain.map(|p| p.0),
        digits: plain.map_or(0, |p| p.1),
        reused,
    })
}

/// Log2 of a unit of bytes, in lower case.
fn shift_of(unit: &str) -> Option<u32> {
    Some(match unit {
        "b" | "byte" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    })
}

/// `>1.5gib` and the like.
fn size(text: &str) -> Option<Term> {
    let number = text.trim_start_matches(['>', '<', '=']);
    let operator = &text[..text.len() - number.len()];
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (number, unit) = number.split_at(end);
    let shift = if unit.is_empty() { 0 } else { shift_of(unit)? };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 9 {
        return None;
    }
    // Twice the number, so that half a digit is a whole number too.
    let twice = u128::from(format!("{whole}{decimals}").parse::<u64>().ok()?) << (shift + 1);
    let scale = 2 * 10u128.pow(decimals.len() as u32);
    let whole = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
    let (floor, ceil) = (whole(twice / scale), whole(twice.div_ceil(scale)));
    // No number of bytes is below none.
    let below =
        |bound: u64| bound.checked_sub(1).map_or(Term::Size(1, 0), |most| Term::Size(0, most));
    Some(match operator {
        ">" => floor.checked_add(1).map_or(Term::Size(1, 0), |least| Term::Size(least, u64::MAX)),
        ">=" => Term::Size(ceil, u64::MAX),
        "<" => below(ceil),
        "<=" => Term::Size(0, floor),
        // A number with decimals is one that was rounded when it was written.
        "=" if !decimals.is_empty() => {
            let half = 1 << shift;
            Term::Size(
                whole(twice.saturating_sub(half).div_ceil(scale)),
                whole((twice + half) / scale),
            )
        }
        "=" => Term::Size(ceil, floor),
        _ => return None,
    })
}

/// `12 of 2,443 blocks`, or `2,443 blocks` when nothing is left out.
pub(super) fn part_of(found: usize, all: usize, one: &str, many: &str) -> String {
    let words = Quantity::count(all as u64, one, many).exact;
    if found == all { words } else { format!("{} of {words}", grouped(found as u64)) }
}
