//! What holds the memory that a finding is about.

use super::{Held, Holder, HolderKind, alike, words};
use crate::Target;
use crate::sidecar::holders::{By, Holders, Link};
use crate::target::slot_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use vramscope_inference::capitalized;
use vramscope_inference::{About, Category, Facts, Finding, FindingKind};
use vramscope_snapshot::StackId;
use vramscope_trace::{Block, is_python, line_of};
use vramscope_units::{Blocks, Bytes};

/// The most holders of a finding.
const MAX_HOLDERS: usize = 2;
/// The most drops of a failed allocation.
const MAX_OF_FAILURE: usize = 3;
/// Holders of a smaller part of a finding, as its divisor, say little about it.
const MIN_SHARE: u64 = 10;
/// A drop after a failed allocation is listed if it frees one part in this many of what is live.
const MIN_OOM_SHARE: u64 = 20;

/// Why nothing is known of memory that is free at the end.
const GONE: &str = "gone with the function that had it; `with vramscope.record(...)` within that \
                    function sees it";

/// A recorded block: its index, its entry and its bytes.
#[derive(Clone, Copy)]
struct Member {
    index: u32,
    entry: u32,
    bytes: u64,
}

/// What holds the memory that a finding is about, most bytes first. Empty if nothing tells it.
pub(crate) fn of_finding(target: Target<'_>, finding: &Finding) -> Vec<Told> {
    let Some(holders) = target.entry.holders() else { return Vec::new() };
    let held = target.entry.held(target.index);
    match finding.kind().about() {
        About::Blocks => of_stacks(target, holders, held, finding),
        _ if finding.kind() == FindingKind::Oom => of_failure(target, holders, held, finding),
        About::Device | About::Id | About::Rank => Vec::new(),
    }
}

/// A holder of a finding, and what to do about it.
pub(crate) struct Told {
    pub(crate) holder: Holder,
    /// What dropping it frees, with its name, as a sentence. Empty if the drop takes more than the
    /// memory that the finding is about.
    pub(crate) advice: String,
}

/// What to do, with what dropping the only holder frees. Several are told one by one.
pub(crate) fn advised(told: &[Told], action: String) -> String {
    match told {
        [only] => [&only.advice, action.as_str()].join(" ").trim().to_owned(),
        _ => action,
    }
}

/// What holds these blocks of a device, most bytes first.
pub fn of_blocks(target: Target<'_>, blocks: &[u32]) -> Vec<Holder> {
    let Some(holders) = target.entry.holders() else { return Vec::new() };
    let held = target.entry.held(target.index);
    let member = |&index: &u32| {
        let at = held.blocks.binary_search_by_key(&index, |block| block.0).ok()?;
        let bytes = target.trace().blocks[index as usize].bytes.0;
        Some(Member { index, entry: held.blocks[at].1, bytes })
    };
    let groups = groups(holders, blocks.iter().filter_map(member).collect());
    groups.iter().map(|(kind, members)| together(holders, *kind, members, 0).holder).collect()
}

/// The recorded blocks of a device.
fn members(target: Target<'_>, held: &Held) -> Vec<Member> {
    let blocks = &target.trace().blocks;
    let member = |&(index, entry): &(u32, u32)| Member {
        index,
        entry,
        bytes: blocks[index as usize].bytes.0,
    };
    held.blocks.iter().map(member).collect()
}

fn sum(members: &[Member]) -> u64 {
    members.iter().map(|member| member.bytes).sum()
}

/// The holders of the blocks that have the call stacks of a finding.
fn of_stacks(target: Target<'_>, holders: &Holders, held: &Held, finding: &Finding) -> Vec<Told> {
    let sites = &target.entry.sites;
    let wanted: FxHashSet<StackId> =
        finding.parts.iter().map(|part| sites.same_line(part.stack)).collect();
    let is_wanted = |stack| stack != StackId::EMPTY && wanted.contains(&sites.same_line(stack));
    let mut all = members(target, held);
    all.retain(|member| is_wanted(target.trace().blocks[member.index as usize].stack));
    let mut groups = groups(holders, all);
    // What was not looked at names nothing.
    groups.retain(|(kind, _)| *kind != HolderKind::Unread);
    let is_noted = |member: &Member| holders.blocks[member.entry as usize].noted;
    let is_named = |(kind, of): &(HolderKind, Vec<Member>)| {
        *kind == HolderKind::Reference && of.iter().any(is_noted)
    };
    if groups.iter().any(is_named) {
        // Functions that had the variable that was noted have left cycles at the end.
        let is_left = |of: &[Member]| {
            of.iter().all(|one| holders.is_gone(&holders.blocks[one.entry as usize]))
        };
        groups.retain(|(kind, of)| *kind == HolderKind::Reference || !is_left(of));
    }
    let whole: u64 = groups.iter().map(|(_, members)| sum(members)).sum();
    let about = match held.noted {
        // A note tells nothing of later blocks.
        Some(slot) if groups.iter().flat_map(|(_, of)| of).all(is_noted) => {
            let blocks = target.trace().blocks.iter().filter(|block| block.is_live_at(slot));
            blocks.filter(|block| is_wanted(block.stack)).map(|block| block.bytes.0).sum()
        }
        _ => finding.bytes,
    };
    let is_growth = matches!(finding.kind(), FindingKind::Growth | FindingKind::Cycle);
    if whole == 0 || whole.saturating_mul(MIN_SHARE) < about {
        let trace = target.trace();
        let at_end = trace.blocks.iter().filter(|block| block.leaves == trace.slots());
        let live: u64 =
            at_end.filter(|block| is_wanted(block.stack)).map(|block| block.bytes.0).sum();
        let is_gone =
            is_growth && holders.is_of_end && live.saturating_mul(MIN_SHARE) < finding.bytes;
        return is_gone.then(|| gone(holders, finding)).into_iter().collect();
    }
    // A root that holds most of it is the answer.
    let most = match groups.first() {
        Some((_, first)) if sum(first) > whole / 2 => 1,
        _ => MAX_HOLDERS,
    };
    groups.retain(|(_, members)| sum(members).saturating_mul(MIN_SHARE) >= whole);
    let peak = slot_of(target.trace().requested_band.peak_event);
    let told = |(kind, members): (HolderKind, Vec<Member>)| {
        let mut told = together(holders, kind, &members, finding.bytes);
        // The holders are known of the end. At the peak another object may have held the memory.
        let at_peak =
            |member: &&Member| target.trace().blocks[member.index as usize].is_live_at(peak);
        let of_peak: u64 = members.iter().filter(at_peak).map(|member| member.bytes).sum();
        if !is_growth && !members.iter().any(is_noted) && of_peak.saturating_mul(2) < sum(&members)
        {
            told.holder.text.push_str(", at the end");
        }
        told
    };
    groups.into_iter().take(most).map(told).collect()
}

/// Of memory that was freed before the end.
fn gone(holders: &Holders, finding: &Finding) -> Told {
    let unread = Holder::new(holders, HolderKind::Unread, Bytes(finding.bytes));
    let blocks = Blocks(finding.parts.iter().map(|part| u64::from(part.blocks)).sum());
    let holder = Holder { text: GONE.to_owned(), note: String::new(), blocks, ..unread };
    Told { holder, advice: String::new() }
}

/// Blocks by kind and root, those with most bytes first.
fn groups(holders: &Holders, all: Vec<Member>) -> Vec<(HolderKind, Vec<Member>)> {
    let mut groups: Vec<(HolderKind, Vec<Member>)> = Vec::new();
    let mut known: FxHashMap<(HolderKind, Option<u32>), usize> = FxHashMap::default();
    for member in all {
        let block = &holders.blocks[member.entry as usize];
        let kind = HolderKind::of(holders, block);
        // A cycle is not named by its first object.
        let root = block.link.filter(|_| kind == HolderKind::Reference);
        let root = root.map(|link| holders.chain(link)[0]);
        let group = *known.entry((kind, root)).or_insert_with(|| {
            groups.push((kind, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(member);
    }
    groups.sort_by_key(|(_, members)| Reverse(sum(members)));
    groups
}

/// What holds blocks of one root, of a finding about `about` bytes.
fn together(holders: &Holders, kind: HolderKind, members: &[Member], about: u64) -> Told {
    let bytes = sum(members);
    let link_of = |member: &Member| holders.blocks[member.entry as usize].link;
    let largest = members.iter().max_by_key(|member| member.bytes);
    let link = largest.and_then(link_of).filter(|_| kind != HolderKind::BelowPython);
    let mut holder =
        Holder { blocks: Blocks(members.len() as u64), ..Holder::new(holders, kind, Bytes(bytes)) };
    let mut advice = String::new();
    let Some(link) = link.filter(|_| kind != HolderKind::Unread) else {
        return Told { holder, advice };
    };
    let root = holders.chain(link)[0];
    let block = |member: &Member| &holders.blocks[member.entry as usize];
    let is_gone = members.iter().any(|member| holders.is_gone(block(member)));
    holder.text = words::root(holders.link(root), is_gone);
    if kind != HolderKind::Reference {
        let roots: FxHashSet<u32> =
            members.iter().filter_map(link_of).map(|link| holders.chain(link)[0]).collect();
        if roots.len() > 1 {
            holder.text = words::cycles(roots.len(), holders.link(root), is_gone);
        }
        return Told { holder, advice };
    }
    let container = container(holders, link, members);
    if let Some(container) = container {
        let mut way = words::way(holders, &holders.chain(container), &[]);
        way.push_str(&words::in_brackets(holders.link(container)));
        holder.text = words::part_of_root(holders.link(root), &way);
    }
    holder
        .text
        .push_str(&largest.map(|member| words::when(holders, block(member))).unwrap_or_default());
    let pattern = alike::pattern(holders, link);
    let alike: Vec<u32> = members
        .iter()
        .filter_map(link_of)
        .filter(|&link| alike::pattern(holders, link) == pattern)
        .collect();
    holder.path = words::way(holders, &holders.chain(link), &alike::ranges(holders, &alike));
    if let Some(row) = common_drop(holders, members).map(|row| &holders.drops[row as usize]) {
        let freed = format!("{}{}", words::at_most(holders), Bytes(row.bytes));
        holder.frees_bytes = Some(Bytes(row.bytes));
        holder.drop = if row.links == [container.unwrap_or(root)] {
            format!("dropping it frees {freed}")
        } else {
            words::dropping(holders, row, &freed)
        };
        // A program does not drop a model to be rid of its gradients.
        if row.bytes / 2 <= bytes {
            let is_all = holders.is_whole() && row.bytes == about;
            let freed = if is_all { "all of it" } else { &freed };
            advice = format!("{}.", capitalized(&words::dropping(holders, row, freed)));
        }
    }
    Told { holder, advice }
}

/// The innermost container, below the root, of which most bytes of these blocks are: the list in
/// `self.history[0..11]`. `None` if it is the root itself.
fn container(holders: &Holders, link: u32, members: &[Member]) -> Option<u32> {
    let is_step = |link: u32| matches!(holders.link(link).by, By::Attribute | By::Key | By::Item);
    let mut of_link: FxHashMap<u32, u64> = FxHashMap::default();
    for member in members {
        for link in
            holders.blocks[member.entry as usize].link.iter().flat_map(|&link| holders.chain(link))
        {
            *of_link.entry(link).or_default() += member.bytes;
        }
    }
    let whole = sum(members);
    let steps = holders.chain(link).into_iter().skip(1);
    let has_most = |link: &u32| is_step(*link) && of_link[link].saturating_mul(2) > whole;
    let last = steps.take_while(has_most).last()?;
    // The only item of a list is no container.
    let is_item = holders.link(last).by == By::Item;
    if is_item {
        holders.link(last).from.filter(|&from| holders.link(from).from.is_some())
    } else {
        Some(last)
    }
}

/// The smallest row that frees most bytes of these blocks.
fn common_drop(holders: &Holders, members: &[Member]) -> Option<u32> {
    let mut frees: FxHashMap<u32, u64> = FxHashMap::default();
    for member in members {
        let row = holders.blocks[member.entry as usize].drop;
        for row in row.iter().flat_map(|&row| holders.around(row)) {
            *frees.entry(row).or_default() += member.bytes;
        }
    }
    let whole = sum(members);
    let mut rows: Vec<(u32, u64)> = frees.into_iter().collect();
    rows.sort_unstable();
    rows.retain(|&(row, bytes)| {
        bytes.saturating_mul(2) > whole && !holders.drops[row as usize].links.is_empty()
    });
    let most = rows.iter().map(|&(_, bytes)| bytes).max()?;
    rows.retain(|&(_, bytes)| bytes == most);
    rows.into_iter().map(|(row, _)| row).min_by_key(|&row| (holders.drops[row as usize].bytes, row))
}

/// References that a program can drop before the failed request, and the events that made the
/// blocks which that frees, ascending: those that free most first.
pub(crate) fn droppable(target: Target<'_>) -> Vec<(String, Vec<u32>)> {
    let (Some(holders), Some(oom)) = (target.entry.holders(), target.trace().ooms.last()) else {
        return Vec::new();
    };
    let held = target.entry.held(target.index);
    let (all, rows) = drops_at(target, holders, held, oom.event.0 + 1);
    let births = |row: u32| {
        let mut births: Vec<u32> = of_row(holders, &all, row)
            .filter_map(|member| target.trace().blocks[member.index as usize].alloc_event())
            .map(|event| event.0)
            .collect();
        births.sort_unstable();
        births
    };
    let named =
        |row: u32| (words::references(holders, &holders.drops[row as usize].links), births(row));
    rows.into_iter().map(named).collect()
}

/// The name of what holds most of the memory that is made through a line of the program:
/// `"losses"`. `None` if nothing tells it.
pub(crate) fn name_of_line(target: Target<'_>, line: &str) -> Option<String> {
    let snapshot = target.snapshot();
    let mut stacks: FxHashMap<StackId, bool> = FxHashMap::default();
    name_of_most(target, |block| {
        let frames = || snapshot.stack(block.stack);
        let is_of = || frames().any(|f| line_of(snapshot, f).as_deref() == Some(line));
        *stacks.entry(block.stack).or_insert_with(is_of)
    })
}

/// The same of the memory that the line of a call stack makes, of what is live after a slot.
pub(crate) fn name_of(target: Target<'_>, stack: StackId, slot: u32) -> Option<String> {
    let sites = &target.entry.sites;
    let line = sites.same_line(stack);
    name_of_most(target, |block| {
        block.is_live_at(slot)
            && block.stack != StackId::EMPTY
            && sites.same_line(block.stack) == line
    })
}

/// The name of what holds most of the blocks of a kind.
fn name_of_most(target: Target<'_>, mut is_of: impl FnMut(&Block) -> bool) -> Option<String> {
    let holders = target.entry.holders()?;
    let mut all = members(target, target.entry.held(target.index));
    all.retain(|member| is_of(&target.trace().blocks[member.index as usize]));
    let whole = sum(&all);
    let (kind, members) = groups(holders, all).into_iter().next()?;
    let is_most = kind == HolderKind::Reference && sum(&members) > whole / 2;
    let row = common_drop(holders, &members).filter(|_| is_most)?;
    let links = &holders.drops[row as usize].links;
    // Of several names none is the answer.
    (links.len() == 1).then(|| words::references(holders, links))
}

/// The largest drops at a failed allocation that free hardly anything of the model.
fn of_failure(target: Target<'_>, holders: &Holders, held: &Held, finding: &Finding) -> Vec<Told> {
    let Facts::Oom(story) = &finding.facts else { return Vec::new() };
    let (all, rows) = drops_at(target, holders, held, story.event.0 + 1);
    let failure = |row: u32| {
        let members: Vec<Member> = of_row(holders, &all, row).copied().collect();
        // The line of each has its drop.
        let told = together(holders, HolderKind::Reference, &members, 0);
        Told { advice: String::new(), ..told }
    };
    rows.into_iter().map(failure).collect()
}

/// The blocks that a drop frees.
fn of_row<'a>(
    holders: &'a Holders,
    all: &'a [Member],
    row: u32,
) -> impl Iterator<Item = &'a Member> {
    all.iter().filter(move |member| {
        let own = holders.blocks[member.entry as usize].drop;
        own.into_iter().flat_map(|own| holders.around(own)).any(|of| of == row)
    })
}

/// The recorded blocks that are live after a slot, and the largest drops of them that the program
/// can do and that free hardly anything of the model.
fn drops_at(
    target: Target<'_>,
    holders: &Holders,
    held: &Held,
    slot: u32,
) -> (Vec<Member>, Vec<u32>) {
    let trace = target.trace();
    let categories = target.entry.categories(target.index);
    let is_model = |member: &Member| {
        matches!(
            categories.get(member.index).category,
            Category::Parameter | Category::OptimizerState | Category::Gradient | Category::Buffer
        )
    };
    let mut all = members(target, held);
    all.retain(|member| trace.blocks[member.index as usize].is_live_at(slot));
    let rows_of = |member: &Member| {
        let row = holders.blocks[member.entry as usize].drop;
        row.into_iter().flat_map(|row| holders.around(row))
    };
    // Of each row: all bytes that are known, and those of the model.
    let mut sums = vec![(0u64, 0u64); holders.drops.len()];
    for member in &all {
        for row in rows_of(member) {
            let (bytes, model) = &mut sums[row as usize];
            *bytes += member.bytes;
            *model += if is_model(member) { member.bytes } else { 0 };
        }
    }
    let live = trace.requested.at(slot);
    let is_argument = |row: u32| {
        let members: Vec<Member> = of_row(holders, &all, row).copied().collect();
        let links = &holders.drops[row as usize].links;
        links.iter().all(|&link| is_argument(target, holders.link(link), slot, &members))
    };
    let is_large = |&row: &u32| {
        let (bytes, model) = sums[row as usize];
        holders.drops[row as usize].links.iter().any(|&link| is_container(holders.link(link)))
            && model.saturating_mul(MIN_SHARE) < bytes
            && bytes.saturating_mul(MIN_OOM_SHARE) >= live.max(1)
    };
    let rows = (0..holders.drops.len() as u32).filter(is_large);
    let mut rows: Vec<u32> = rows.filter(|&row| !is_argument(row)).collect();
    // Of rows that free the same, the innermost names what to drop.
    rows.sort_by_key(|&row| {
        (Reverse(sums[row as usize].0), holders.drops[row as usize].bytes, row)
    });
    let is_within = |inner: u32, outer: u32| holders.around(inner).any(|row| row == outer);
    let mut told: Vec<u32> = Vec::new();
    for row in rows {
        if told.iter().all(|&of| !is_within(row, of) && !is_within(of, row)) {
            told.push(row);
        }
        if told.len() == MAX_OF_FAILURE {
            break;
        }
    }
    (all, told)
}

/// Whether a link is a local variable of a function that the request at a slot runs in, and most of
/// these blocks were made outside of it. It has them from its caller, so it cannot drop them.
fn is_argument(target: Target<'_>, link: &Link, slot: u32, members: &[Member]) -> bool {
    let (By::Local, Some(function), Some(file)) = (link.by, &link.function, &link.file) else {
        return false;
    };
    let snapshot = target.snapshot();
    let runs = |stack: StackId| {
        snapshot.stack(stack).any(|frame| {
            // Recorders write qualified names: `Decoder.forward`.
            let name = snapshot.text(frame.name);
            let rest = function.strip_suffix(&*name);
            rest.is_some_and(|of| of.is_empty() || of.ends_with('.'))
                && *snapshot.text(frame.file) == **file
        })
    };
    let row = target.trace().device.events.start + slot.saturating_sub(1);
    let has_python =
        |stack: StackId| snapshot.stack(stack).any(|frame| is_python(&snapshot.text(frame.file)));
    let is_outside = |member: &&Member| {
        let stack = target.trace().blocks[member.index as usize].stack;
        has_python(stack) && !runs(stack)
    };
    let outside: u64 = members.iter().filter(is_outside).map(|member| member.bytes).sum();
    runs(snapshot.events.stack(row)) && outside.saturating_mul(2) > sum(members)
}

/// Whether a reference leads to more than one tensor. A single one may be what the failed line
/// itself needs.
fn is_container(link: &Link) -> bool {
    let is_tensor = link.type_name.as_deref().is_none_or(|name| name.ends_with("Tensor"));
    !is_tensor || link.by == By::Global
}
