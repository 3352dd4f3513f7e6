//! What is read again: the uses of a traced step, joined with the blocks of a device.
//!
//! A use belongs to the block that is live at its address at its time. From the uses of a block
//! follows when it is dead: no operation uses it any more, and its memory stays allocated.
//!
//! A block that outlives the step may be used in the next one, which was not traced. The steps of a
//! program repeat: if each step leaves blocks of one call site and size, a later one drops them,
//! and none of them is read in the traced step, they are dead after the last use in their own step.
//! Else the block is [kept](UseGroup::Kept). What stays from step to step, as parameters, is never
//! dead. A block without a use is not seen: kernels that do not go through PyTorch's dispatcher may
//! use it.

mod floor;
mod moment;
mod record;

pub use floor::Floor;
pub use moment::{FAR_OPERATIONS, Moment, NextUse, UseGroup};
pub use record::UseTrace;
use record::{READ, RESULT, WRITE};

use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vramscope_snapshot::{Snapshot, StackId};
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_trace::{Block, Clock, Coverage, Trace};
use vramscope_units::Bytes;

/// The largest part of uses without a block at which the join is trusted, in percent.
const MAX_LOST_PERCENT: u64 = 5;

/// An operation of the traced step.
#[derive(Clone, Copy, Debug)]
struct Operation {
    name: u32,
    /// The slot in which it begins: no event of it has happened.
    first: u32,
    /// The slot in which it ends.
    last: u32,
    begin_us: i64,
    /// Whether it reads something on the device.
    has_inputs: bool,
}

/// A use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    operation: u32,
    how: u8,
}

/// How a block relates to the traced step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It was live before, and is after.
    Stays,
    /// It is allocated and freed in the step.
    Own,
    /// It is allocated in the step, and lives on.
    Outlives,
    /// It was live before, and is freed in the step.
    Left,
}

/// A block that is live in the traced step.
#[derive(Clone, Debug)]
struct Used {
    block: u32,
    life: Life,
    /// Its uses.
    uses: Range<u32>,
    /// The slot from which it is never used again; `None` if that is not known.
    dead_from: Option<u32>,
    /// It is made in a region that `torch.compile` has compiled.
    is_compiled: bool,
}

/// The uses of a traced step on one device.
#[derive(Clone, Debug)]
pub struct Uses {
    names: Vec<String>,
    operations: Vec<Operation>,
    /// Uses by block, then by operation.
    all: Vec<Use>,
    /// Blocks that are live in the step, by index.
    blocks: Vec<Used>,
    /// The slots of the step.
    pub slots: Range<u32>,
    /// The step, as the program counts.
    pub step: Option<u64>,
    /// Uses of smaller storages were left out.
    pub least_bytes: u64,
    /// Seconds that the program waited for the trace.
    pub seconds: f64,
    /// Whether code of `torch.compile` allocated in the step. Its kernels are not seen.
    pub has_compiled: bool,
    /// Blocks that an operation made without contents, and the next one read: a kernel that is not
    /// seen has filled them.
    pub filled_unseen: u32,
}

/// Why there are no uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoUses {
    /// No step was traced.
    NotTraced,
    /// A limit has cut the trace.
    Cut,
    /// The step is not within the history.
    NotRecorded,
    /// Uses have no block at their address.
    Mismatch,
}

/// The blocks of equal call sites and sizes.
type Alike = (StackId, Bytes);

/// Blocks of equal call sites and sizes that are live at an end of the traced step.
#[derive(Clone, Debug, Default)]
struct Repeated {
    /// Whether one that is live at its begin is read in the step.
    is_read: bool,
    /// Whether one of these lives on to the end of the recording.
    stays: bool,
    /// The first slots of these, and the slots in which they are freed.
    before: Vec<[u32; 2]>,
    /// Whether all that are allocated in the step and live on are used; `None` without any.
    outlive_seen: Option<bool>,
}

impl Repeated {
    /// Whether each step leaves some, a later one drops them, and none is read after its own step.
    /// Those that pile up until they are read together live the longer the older they are: `births`
    /// are the first slots of all blocks of their call site and size.
    fn is_never_read(&self, births: &[u32]) -> bool {
        let age = |&[enters, leaves]: &[u32; 2]| {
            births.partition_point(|&birth| birth < leaves)
                - births.partition_point(|&birth| birth <= enters)
        };
        let mut ages = self.before.iter().map(age);
        let Some(first) = ages.next() else { return false };
        let is_known = self.outlive_seen == Some(true) && !self.is_read && !self.stays;
        is_known && ages.all(|age| age == first)
    }
}

impl Uses {
    /// Joins uses with the blocks of a device.
    ///
    /// # Errors
    /// Why nothing can be said.
    pub async fn new(
        from: &UseTrace,
        snapshot: &Snapshot,
        trace: &Trace,
        budget: &mut Budget,
    ) -> Result<Self, NoUses> {
        if !from.complete {
            return Err(NoUses::Cut);
        }
        let clock = trace.clock.as_ref().ok_or(NoUses::NotRecorded)?;
        let slots = slot_at(clock, from.begin_us)..slot_at(clock, from.end_us.saturating_add(1));
        // What was used before the history began is not known, unless nothing was.
        let is_late = from.begin_us < clock.start.0 && trace.coverage != Coverage::Whole;
        if slots.is_empty() || is_late {
            return Err(NoUses::NotRecorded);
        }
        let device = u64::from(trace.device.device);
        let mut by_address: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        let mut blocks: Vec<Used> = Vec::new();
        let visit = |index, block: &Block| {
            if block.enters <= slots.end && block.leaves > slots.start {
                by_address.entry(block.address.0).or_default().push(blocks.len() as u32);
                let uses = 0..0;
                let life = life(block, &slots);
                let is_compiled = is_compiled(snapshot, trace, block);
                blocks.push(Used { block: index, life, uses, dead_from: None, is_compiled });
            }
        };
        trace.each_block(2, budget, visit).await;
        let mut operations = Vec::with_capacity(from.len());
        let mut found: Vec<(u32, Use)> = Vec::with_capacity(from.uses.len());
        let (mut all, mut lost) = (0_u64, 0_u64);
        let mut charged = 0;
        for raw in from.each() {
            let number = operations.len() as u32;
            let (first, last) =
                (slot_at(clock, raw.begin_us), slot_at(clock, raw.end_us.saturating_add(1)));
            let has_inputs = raw.uses.iter().any(|&one| (one as u8) & (READ | RESULT) == READ);
            let (name, begin_us) = (raw.name, raw.begin_us);
            operations.push(Operation { name, first, last, begin_us, has_inputs });
            for &one in raw.uses {
                let Some((_, address)) = from.storage(one).filter(|of| of.0 == device) else {
                    continue;
                };
                let how = (one & 7) as u8;
                let at = by_address.get(&address).and_then(|candidates| {
                    live(trace, &blocks, candidates, if how & RESULT > 0 { last } else { first })
                        .or_else(|| touching(trace, &blocks, candidates, first..last + 1))
                });
                all += 1;
                match at {
                    Some(at) => found.push((at, Use { operation: number, how })),
                    None => lost += 1,
                }
            }
            charged += 1 + raw.uses.len();
            if charged > STRIDE {
                budget.charge(8 * charged as u64).await;
                charged = 0;
            }
        }
        if lost * 100 > all * MAX_LOST_PERCENT {
            return Err(NoUses::Mismatch);
        }
        budget.charge(8 * found.len() as u64).await;
        found.sort_by_key(|&(block, one)| (block, one.operation));
        let mut at = 0;
        for (index, block) in (0..).zip(&mut blocks) {
            let begin = at;
            at += found[at..].iter().take_while(|of| of.0 == index).count();
            block.uses = begin as u32..at as u32;
        }
        let uses = found.into_iter().map(|(_, one)| one).collect();
        let mut joined = Self {
            names: from.names.clone(),
            operations,
            all: uses,
            has_compiled: blocks.iter().any(|block| block.is_compiled),
            blocks,
            slots,
            step: from.step,
            least_bytes: from.least_bytes,
            seconds: from.seconds,
            filled_unseen: 0,
        };
        budget.charge(trace.blocks.len() as u64 + 8 * joined.blocks.len() as u64).await;
        joined.find_ends(trace);
        joined.filled_unseen = joined.count_filled_unseen();
        Ok(joined)
    }

    /// The number of operations.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Whether everything that uses memory is seen, as far as the trace tells.
    pub fn is_exact(&self) -> bool {
        !self.has_compiled && self.filled_unseen == 0
    }

    /// The slot from which a block is never used again, although it is live; `None` if that is not
    /// known.
    pub fn dead_from(&self, block: u32) -> Option<u32> {
        let at = self.blocks.binary_search_by_key(&block, |of| of.block).ok()?;
        self.blocks[at].dead_from
    }

    /// The blocks with the slot from which each is never used again.
    pub fn deaths(&self) -> impl Iterator<Item = (u32, u32)> {
        self.blocks.iter().filter_map(|of| Some((of.block, of.dead_from?)))
    }

    /// The operation of the last use of a block, such as `aten.mm`.
    pub fn last_operation(&self, block: u32) -> Option<&str> {
        let at = self.blocks.binary_search_by_key(&block, |of| of.block).ok()?;
        let last = self.of(&self.blocks[at]).last()?;
        self.names.get(self.operations[last.operation as usize].name as usize).map(String::as_str)
    }

    fn of(&self, block: &Used) -> &[Use] {
        &self.all[block.uses.start as usize..block.uses.end as usize]
    }

    fn is_read(&self, block: &Used) -> bool {
        self.of(block).iter().any(|one| one.how & READ > 0)
    }

    /// Finds from when on blocks are dead.
    fn find_ends(&mut self, trace: &Trace) {
        let mut repeated: FxHashMap<Alike, Repeated> = FxHashMap::default();
        for used in &self.blocks {
            let block = &trace.blocks[used.block as usize];
            match used.life {
                Life::Left | Life::Stays => {
                    let of = repeated.entry(alike(block)).or_default();
                    of.is_read |= self.is_read(used);
                    of.stays |= block.leaves >= trace.slots();
                    of.before.push([block.enters, block.leaves]);
                }
                Life::Outlives => {
                    let of = repeated.entry(alike(block)).or_default();
                    let is_seen = !self.of(used).is_empty();
                    of.outlive_seen = Some(of.outlive_seen.unwrap_or(true) && is_seen);
                }
                Life::Own => {}
            }
        }
        let mut births: FxHashMap<Alike, Vec<u32>> = FxHashMap::default();
        for block in trace.blocks.iter().filter(|block| repeated.contains_key(&alike(block))) {
            births.entry(alike(block)).or_default().push(block.enters);
        }
        let never_read: FxHashSet<Alike> = births
            .into_iter()
            .filter_map(|(of, mut births)| {
                births.sort_unstable();
                repeated.get(&of)?.is_never_read(&births).then_some(of)
            })
            .collect();
        for at in 0..self.blocks.len() {
            let used = &self.blocks[at];
            let block = &trace.blocks[used.block as usize];
            let is_never_read = never_read.contains(&alike(block));
            let last = self.of(used).last();
            let after = last.map(|one| self.operations[one.operation as usize].last + 1);
            let dead = match (used.life, after) {
                (Life::Own | Life::Left, Some(after)) => Some(after),
                (Life::Outlives, Some(after)) => is_never_read.then_some(after),
                (Life::Left | Life::Stays, None) => is_never_read.then_some(self.slots.start),
                (Life::Stays, Some(_)) | (Life::Own | Life::Outlives, None) => None,
            };
            let dead = dead.filter(|&slot| slot < block.leaves && !used.is_compiled);
            self.blocks[at].dead_from = dead;
        }
    }

    fn count_filled_unseen(&self) -> u32 {
        let is_empty = |name: &str| {
            let short = name.rsplit('.').next().unwrap_or_default();
            short.starts_with("empty") || short.starts_with("new_empty")
        };
        let is_filled = |block: &&Used| match self.of(block) {
            [first, second, ..] => {
                let name = &self.names[self.operations[first.operation as usize].name as usize];
                first.how == WRITE | RESULT && is_empty(name) && second.how == READ
            }
            _ => false,
        };
        self.blocks.iter().filter(is_filled).count() as u32
    }
}

/// The number of events before a time: the slot of the state at it.
fn slot_at(clock: &Clock, time_us: i64) -> u32 {
    let offset = u64::try_from(time_us.saturating_sub(clock.start.0));
    offset.map_or(0, |offset| clock.events_before(offset))
}

fn life(block: &Block, slots: &Range<u32>) -> Life {
    match (block.enters <= slots.start, block.leaves > slots.end) {
        (true, true) => Life::Stays,
        (true, false) => Life::Left,
        (false, true) => Life::Outlives,
        (false, false) => Life::Own,
    }
}

fn alike(block: &Block) -> Alike {
    (block.stack, block.bytes)
}

fn is_compiled(snapshot: &Snapshot, trace: &Trace, block: &Block) -> bool {
    let row = block.alloc_event().map(|event| trace.device.events.start + event.0);
    let contexts = &snapshot.events.compile_context;
    row.is_some_and(|row| contexts.binary_search_by_key(&row, |of| of.0).is_ok())
}

/// The block of `candidates` that is live in a slot.
fn live(trace: &Trace, blocks: &[Used], candidates: &[u32], slot: u32) -> Option<u32> {
    let is_live = |at: &&u32| trace.blocks[blocks[**at as usize].block as usize].is_live_at(slot);
    candidates.iter().find(is_live).copied()
}

/// The last block of `candidates` that is live in one of the slots.
fn touching(trace: &Trace, blocks: &[Used], candidates: &[u32], slots: Range<u32>) -> Option<u32> {
    let touches = |at: &&u32| {
        let block = &trace.blocks[blocks[**at as usize].block as usize];
        block.enters < slots.end && block.leaves > slots.start
    };
    candidates.iter().rfind(touches).copied()
}
