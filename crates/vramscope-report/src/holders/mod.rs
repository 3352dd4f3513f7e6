//! What holds blocks: the references that the file beside a snapshot names (SIDECAR.md), in
//! words.
//!
//! The file describes the end of the recording. Of blocks that are freed by then it has at most a
//! note that the recorder took earlier.

mod alike;
mod live;
mod of_finding;
mod report;
mod tree;
mod words;

pub use live::{LiveBlock, LiveHolders, of_process};
pub use of_finding::of_blocks;
pub(crate) use of_finding::{advised, droppable, name_of, name_of_line, of_finding};
pub use report::{DropRecord, HolderRow, HoldersReport, holders_at, holders_of, report};
pub(crate) use tree::of_holder;

use self::tree::Tree;
use crate::Target;
use crate::sidecar::holders::{By, HeldBlock, Holders, NoChain};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_trace::Trace;
use vramscope_units::{Blocks, Bytes, grouped};

/// What holds blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Holder {
    /// The kind.
    pub kind: HolderKind,
    /// Where the chain begins: `local "losses" (list of 12) of train(), train.py:42`.
    pub text: String,
    /// The way from there: `losses[0] -> Tensor -> its autograd graph saves it as "other"`. Empty
    /// if that variable itself holds the memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
    pub path: String,
    /// What dropping references frees: `dropping "losses" frees 3.18 GiB`. Empty if that is not
    /// known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
    pub drop: String,
    /// What else is known: a slice keeps the whole block, graphs were not read. Often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<String>", optional))]
    pub note: String,
    /// Requested bytes of the blocks that it holds.
    pub bytes: Bytes,
    /// These blocks.
    pub blocks: Blocks,
    /// What the drop frees; null if that is not known.
    pub frees_bytes: Option<Bytes>,
    /// True if the drop may free less: not all references were read.
    pub is_upper_bound: bool,
}

impl Holder {
    /// A holder of one block of which only the kind is known.
    fn new(holders: &Holders, kind: HolderKind, bytes: Bytes) -> Self {
        let graphs = (!holders.graph).then(|| NO_GRAPHS.to_owned());
        let notes: Vec<String> = graphs.into_iter().chain(missing(holders)).collect();
        Self {
            kind,
            text: kind.words().to_owned(),
            path: String::new(),
            drop: String::new(),
            note: if kind == HolderKind::Unread { notes.join("; ") } else { String::new() },
            bytes,
            blocks: Blocks(1),
            frees_bytes: None,
            is_upper_bound: !holders.is_whole(),
        }
    }

    /// The holder in one line, without what drops free:
    /// `local "cache" (dict of 2) of main(), a.py:4: cache["x"]`.
    pub fn line(&self) -> String {
        match self.path.as_str() {
            "" => self.text.clone(),
            path => format!("{}: {path}", self.text),
        }
    }
}

/// What holds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// A reference that the program can drop.
    Reference,
    /// Objects that hold only each other: the garbage collector frees them.
    Cycle,
    /// No Python object.
    BelowPython,
    /// The recorder did not look at it.
    Unread,
}

impl HolderKind {
    /// The kind of a recorded block.
    fn of(holders: &Holders, block: &HeldBlock) -> Self {
        match (block.link, block.none) {
            (Some(link), _) => {
                let root = holders.chain(link)[0];
                match holders.link(root).by {
                    By::Cycle if holders.is_whole() => Self::Cycle,
                    // A reference that was not reached may hold it.
                    By::Cycle => Self::Unread,
                    _ => Self::Reference,
                }
            }
            (None, Some(NoChain::BelowPython)) if holders.is_whole() => Self::BelowPython,
            (None, _) => Self::Unread,
        }
    }

    /// The kind in words; empty for a reference.
    fn words(self) -> &'static str {
        match self {
            Self::Reference => "",
            Self::Cycle => "a reference cycle",
            Self::BelowPython => {
                "held below Python (a running expression, autograd, a CUDA graph or a library)"
            }
            Self::Unread => "not known: the recorder did not look at it",
        }
    }
}

/// Why references may be missing; `None` where all were read that graphs do not hide.
fn missing(holders: &Holders) -> Option<String> {
    let cut = (!holders.complete).then(|| CUT.to_owned());
    let opaque = match holders.opaque {
        0 => None,
        1 => Some(format!("1 tensor {OPAQUE}")),
        count => Some(format!("{} tensors {OPAQUE}", grouped(count))),
    };
    let all: Vec<String> = cut.into_iter().chain(opaque).collect();
    (!all.is_empty()).then(|| all.join(", and "))
}

/// Tensors were not read.
const OPAQUE: &str = "could not be read without running code of the program";
/// Graphs were not read.
const NO_GRAPHS: &str =
    "autograd graphs and gradients were not read: another thread or a profiler was in the way";
/// The walk was cut.
const CUT: &str = "the walk through the references was cut";

/// The blocks of a device whose holders are recorded.
#[derive(Debug, Default)]
pub struct Held {
    /// Blocks by their index in the trace, ascending, each with its entry.
    blocks: Vec<(u32, u32)>,
    /// The slot in which a note was taken.
    noted: Option<u32>,
    tree: Tree,
}

impl Held {
    /// The recorded holders of a trace: of the blocks that are live at its end, and of those that
    /// were when a note was taken.
    pub(crate) fn new(holders: Option<&Holders>, trace: &Trace) -> Self {
        let Some(holders) = holders else { return Self::default() };
        let noted = noted_slot(holders, trace);
        let (of_end, of_note) =
            (by_address(holders, trace, false), by_address(holders, trace, true));
        let is_named = |entry: &u32| {
            let kind = HolderKind::of(holders, &holders.blocks[*entry as usize]);
            kind == HolderKind::Reference
        };
        let mut blocks = Vec::new();
        for (index, block) in (0..).zip(&trace.blocks) {
            let entry = |of: &FxHashMap<u64, u32>| of.get(&block.address.0).copied();
            let at_end = (block.leaves == trace.slots()).then(|| entry(&of_end)).flatten();
            let is_noted = noted.is_some_and(|slot| block.is_live_at(slot));
            let before = is_noted.then(|| entry(&of_note)).flatten();
            // What a variable of a function held is held by nothing, or by a cycle, at the end.
            let found = at_end.filter(is_named).or(before).or(at_end);
            blocks.extend(found.map(|entry| (index, entry)));
        }
        Self { tree: Tree::new(holders), blocks, noted }
    }

    /// The recorded block at an index of the trace.
    fn block<'a>(&self, holders: &'a Holders, index: u32) -> Option<&'a HeldBlock> {
        let at = self.blocks.binary_search_by_key(&index, |block| block.0).ok()?;
        Some(&holders.blocks[self.blocks[at].1 as usize])
    }
}

/// The slot in which a note was taken.
fn noted_slot(holders: &Holders, trace: &Trace) -> Option<u32> {
    let (noted, clock) = (holders.noted?, trace.clock.as_ref()?);
    let offset = u64::try_from(noted.time_us.checked_sub(clock.start.0)?).ok()?;
    Some(clock.events_before(offset.saturating_add(1)))
}

/// The entries of a device by the addresses of their blocks: those of a note, or of the end.
fn by_address(holders: &Holders, trace: &Trace, is_noted: bool) -> FxHashMap<u64, u32> {
    let mut found = FxHashMap::default();
    for (entry, block) in (0..).zip(&holders.blocks) {
        if block.device == trace.device.device && block.noted == is_noted {
            found.entry(block.address).or_insert(entry);
        }
    }
    found
}

/// What holds a block; `None` if nothing is recorded of it.
pub fn of_block(target: Target<'_>, index: u32) -> Option<Holder> {
    let holders = target.entry.holders()?;
    let block = target.entry.held(target.index).block(holders, index)?;
    let bytes = target.trace().blocks[index as usize].bytes;
    Some(holder(holders, block, bytes))
}

/// What holds a recorded block of this size.
fn holder(holders: &Holders, block: &HeldBlock, bytes: Bytes) -> Holder {
    let kind = HolderKind::of(holders, block);
    let mut all = Holder::new(holders, kind, bytes);
    let Some(link) = block.link.filter(|_| kind != HolderKind::Unread) else { return all };
    let chain = holders.chain(link);
    all.text = words::root(holders.link(chain[0]), holders.is_gone(block));
    all.text.push_str(&words::when(holders, block));
    all.path = words::way(holders, &chain, &[]);
    if let Some(view) = block.view_bytes.filter(|&view| view < bytes.0) {
        all.note = format!("a slice of {} keeps {bytes}", Bytes(view));
    }
    if let (Some(row), HolderKind::Reference) = (block.drop, kind) {
        let row = named_row(holders, row);
        all.drop = words::drop(holders, row);
        all.frees_bytes = Some(Bytes(holders.drops[row as usize].bytes));
        // The variable frees more than its item.
        let frees_more = |&outer: &u32| {
            let outer = &holders.drops[outer as usize];
            outer.links == [chain[0]] && outer.bytes > holders.drops[row as usize].bytes
        };
        if let Some(outer) = holders.around(row).find(frees_more) {
            all.drop = format!("{}; {}", all.drop, words::drop(holders, outer));
        }
    }
    all
}

/// This row, or the next one around it that names a reference.
fn named_row(holders: &Holders, row: u32) -> u32 {
    let is_named = |&row: &u32| !holders.drops[row as usize].links.is_empty();
    holders.around(row).find(is_named).unwrap_or(row)
}
