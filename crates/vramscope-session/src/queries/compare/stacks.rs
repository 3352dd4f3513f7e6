//! The call stacks of a comparison: a table, and the details of a row.

use super::Compared;
use crate::messages::views::{
    ComparedGroup, ComparedStack, ComparedStacks, ComparedTree, DetailCard,
};
use crate::messages::{DetailRow, FrameRow, StackDetail};
use crate::queries::block_detail::folded;
use crate::queries::detail_card::detail_card;
use vramscope_report::diff::{BytesDiff, CountDiff, Matched, StackDiff};
use vramscope_report::disambiguate::distinguishing_frames;
use vramscope_report::{FrameRecord, Quantity};
use vramscope_units::{Change, grouped};

impl Compared {
    /// The rows of a group whose site, frames or category contain a text, case-insensitively, and
    /// whose stacks go through the root of a flame graph.
    pub(super) fn page(
        &mut self,
        text: &str,
        group: &str,
        tree: &ComparedTree,
        from: u32,
        count: u32,
    ) -> ComparedStacks {
        let below = self.below(tree);
        let wanted = text.trim().to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let is_wanted = |i: &usize| {
            let (s, [site, via]) = (&self.stacks[*i], &self.names[*i]);
            let category = s.category.as_deref().is_some_and(has);
            let in_labels = category || has(&s.site) || has(site) || has(via);
            below.as_ref().is_none_or(|below| below[*i])
                && (wanted.is_empty()
                    || in_labels
                    || s.frames.iter().any(|f| has(&f.name) || has(&f.file)))
        };
        let mut found: Vec<usize> = (0..self.stacks.len()).filter(is_wanted).collect();
        let groups = self.groups(&found);
        // Unchanged rows are shown on request only.
        found.retain(|&i| match group_of(&self.stacks[i]) {
            of if group.is_empty() => of != "unchanged",
            of => of == group,
        });
        let change =
            found.iter().fold(0i64, |sum, &i| sum.saturating_add(self.stacks[i].bytes.change.0));
        let all = Quantity::count(self.stacks.len() as u64, "call stack", "call stacks").exact;
        let count_text = if found.len() == self.stacks.len() {
            all
        } else {
            format!("{} of {all}", grouped(found.len() as u64))
        };
        let largest = self.stacks.first().map_or(0, |s| s.bytes.change.0.unsigned_abs()).max(1);
        let row = |&i: &usize| {
            let (stack, [site, via]) = (&self.stacks[i], &self.names[i]);
            ComparedStack {
                row: i as u32,
                site: site.clone(),
                via: via.clone(),
                category: stack.category.clone().unwrap_or_default(),
                bytes: stack.bytes,
                share: stack.bytes.change.0 as f64 / largest as f64,
                blocks: stack.blocks.change,
                note: note(stack).to_owned(),
            }
        };
        ComparedStacks {
            total: found.len() as u32,
            text: format!("{count_text}, {}", Quantity::change_of_bytes(change).text),
            from,
            rows: found.iter().skip(from as usize).take(count as usize).map(row).collect(),
            groups,
        }
    }

    /// The groups of some stacks.
    fn groups(&self, stacks: &[usize]) -> Vec<ComparedGroup> {
        let group = |key: &&str| {
            let rows = stacks.iter().filter(|&&i| group_of(&self.stacks[i]) == *key);
            let sum = |(count, sum): (u32, i64), &i: &usize| {
                (count + 1, sum.saturating_add(self.stacks[i].bytes.change.0))
            };
            let (count, change) = rows.fold((0, 0), sum);
            (count > 0).then(|| ComparedGroup {
                key: (*key).to_owned(),
                text: format!("{} {key}", grouped(count.into())),
                count,
                change: Change(change),
            })
        };
        ["new", "gone", "grown", "shrunk", "unchanged"].iter().filter_map(group).collect()
    }

    /// The details of a row of the unfiltered table.
    pub(super) fn detail(&self, row: u32) -> Option<DetailCard> {
        let stack = self.stacks.get(row as usize)?;
        let mut rows = held_rows(stack.bytes, stack.blocks);
        let texts = [
            ("category", "category", stack.category.clone()),
            ("matched", "call stack", matched(stack).map(str::to_owned)),
        ];
        rows.extend(
            texts
                .into_iter()
                .filter_map(|(key, label, text)| Some(DetailRow::new(key, label, text?, None))),
        );
        let note = match (stack.no_stack.is_some(), stack.of_free) {
            (true, _) => Some(format!("These blocks have no call stack: {}.", stack.site)),
            (_, true) => Some(
                "This is the call stack of the free. The alloc is not in the trace.".to_owned(),
            ),
            _ => None,
        };
        Some(change_card(stack.bytes, rows, &stack.frames.iter().collect::<Vec<_>>(), note))
    }
}

/// What both sides hold.
pub(super) fn held_rows(bytes: BytesDiff, blocks: CountDiff) -> Vec<DetailRow> {
    let line = |key: &str, label: &str, text: String, raw: i64| {
        DetailRow::new(key, label, text, Some(raw.to_string()))
    };
    let counts = |n: i64| Quantity::count(n.unsigned_abs(), "block", "blocks").exact;
    let held = |bytes: i64, blocks: i64| {
        format!("{}, {}", Quantity::signed_bytes(bytes).exact, counts(blocks))
    };
    vec![
        line("a", "in A", held(bytes.a.0, blocks.a.0), bytes.a.0),
        line("b", "in B", held(bytes.b.0, blocks.b.0), bytes.b.0),
        line("percent", "change", bytes.percent(), bytes.change.0),
    ]
}

/// The card of a change, with the frames of its call stack, innermost first.
pub(super) fn change_card(
    bytes: BytesDiff,
    rows: Vec<DetailRow>,
    frames: &[&FrameRecord<'_>],
    note: Option<String>,
) -> DetailCard {
    let change = Quantity::change_of_bytes(bytes.change.0);
    let mut card = detail_card("Change", change, rows, "", Vec::new());
    let line = |f: &&FrameRecord<'_>| format!("  {}  {}:{}\n", f.name, f.file, f.line);
    card.copy.extend(frames.iter().map(line));
    let frames: Vec<FrameRow> = frames.iter().map(|frame| FrameRow::new(frame, "")).collect();
    card.stack = Some(StackDetail { folded: folded(&frames), frames, note });
    card
}

/// How a call stack changed, in a word.
fn group_of(stack: &StackDiff) -> &'static str {
    match stack.matched {
        Matched::OnlyA => "gone",
        Matched::OnlyB => "new",
        _ if stack.bytes.change.0 > 0 => "grown",
        _ if stack.bytes.change.0 < 0 => "shrunk",
        _ => "unchanged",
    }
}

/// The note in a row of the table.
fn note(stack: &StackDiff) -> &'static str {
    match (stack.matched, stack.of_free) {
        (Matched::OnlyA, _) => "only in A",
        (Matched::OnlyB, _) => "only in B",
        (_, true) => "stack of the free",
        (Matched::Moved, _) => "lines moved",
        _ => "",
    }
}

/// How the stack was matched, in the details; `None` for equal frames.
fn matched(stack: &StackDiff) -> Option<&'static str> {
    Some(match stack.matched {
        Matched::OnlyA => "only in A",
        Matched::OnlyB => "only in B",
        Matched::Moved => "same functions, but lines or folders differ. Shown: B",
        Matched::Same => return None,
    })
}

/// The call site of each stack, and the frame that distinguishes it from stacks of the same site.
pub(super) fn names(stacks: &[StackDiff]) -> Vec<[String; 2]> {
    let keys: Vec<_> = stacks.iter().map(|stack| (stack.site.as_str(), &*stack.frames)).collect();
    let via = |frame: Option<&FrameRecord<'_>>| frame.map_or_else(String::new, FrameRecord::label);
    let sites = stacks.iter().map(|stack| stack.site.clone());
    sites.zip(distinguishing_frames(&keys).into_iter().map(via)).map(<[String; 2]>::from).collect()
}
