//! Private pools: what they keep for themselves, in every slot.
//!
//! Memory that is reserved for a private pool (a CUDA graph's, or one that a program made) serves
//! nothing else, live or not: the blocks that a graph uses again when it is replayed count as free.
//! So the honest height of the stack counts each such pool as a whole in place of its blocks.

use crate::carving::Carving;
use crate::segments::Span;
use crate::series::Series;
use crate::slicing::{Budget, STRIDE, filled, run_to_completion, strides};
use crate::trace::Trace;
use std::collections::BTreeMap;
use vramscope_snapshot::{PoolId, PoolIndex, Snapshot};
use vramscope_units::Bytes;

/// The private pools of a device's window.
///
/// The size of a pool is the larger of its active bytes (sizes of its blocks from `alloc` to
/// `free_completed`) and its reserved bytes (its segments). That is the reserved bytes, unless
/// segments are missing in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolEnvelope {
    /// In every slot `requested_bytes` with the size of each private pool in place of the requested
    /// bytes of its blocks. It is never lower than `requested_bytes`.
    pub height: Series,
    /// The sizes of all private pools together in every slot.
    pub size: Series,
    /// The pools, in the file's order.
    pub pools: Vec<PoolPeak>,
}

/// The most that one private pool ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPeak {
    /// Which pool.
    pub pool: PoolIndex,
    /// The peak of its reserved bytes.
    pub reserved: Bytes,
    /// The peak of its active bytes.
    pub active: Bytes,
}

/// What the private pools of a device hold in every slot; `None` when it has no private pool.
///
/// A block is of the pool that it names, else of that of the segment in which it lies when it
/// enters. Segments of which the file tells no pool (those that are given back before the end,
/// before PyTorch 2.12) count as the default pool's.
pub fn pool_envelope(
    trace: &Trace,
    carving: &Carving,
    snapshot: &Snapshot,
) -> Option<PoolEnvelope> {
    run_to_completion(pool_envelope_sliced(trace, carving, snapshot, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn pool_envelope_sliced(
    trace: &Trace,
    carving: &Carving,
    snapshot: &Snapshot,
    budget: &mut Budget,
) -> Option<PoolEnvelope> {
    let is_private = |pool: PoolIndex| snapshot.pool(pool).is_some_and(|id| id != PoolId::DEFAULT);
    let slots = trace.slots();
    // By entry, as all spans are.
    let spans: Vec<&Span> = carving
        .segments
        .spans
        .iter()
        .filter(|s| is_private(s.pool) && s.enters < s.leaves)
        .collect();
    let mut any = !spans.is_empty();
    for blocks in trace.blocks.chunks(STRIDE) {
        if any {
            break;
        }
        budget.charge(blocks.len() as u64).await;
        any = blocks.iter().any(|b| is_private(b.pool));
    }
    if !any {
        return None;
    }
    let mut leaving: Vec<(u32, u32)> = (0u32..)
        .zip(&spans)
        .filter(|(_, s)| s.leaves < slots)
        .map(|(i, s)| (s.leaves, i))
        .collect();
    leaving.sort_unstable();
    let (mut entered, mut left) = (0, 0);
    let mut open: BTreeMap<u64, u32> = BTreeMap::new();
    // The pool of every block that has entered.
    let mut of = filled(PoolIndex::UNKNOWN, trace.blocks.len(), budget).await;
    let mut sweep =
        Sweep { pools: vec![Pool::default(); snapshot.pools.len()], ..Sweep::default() };
    let (mut height, mut size) =
        (Series::with_capacity(slots as usize), Series::with_capacity(slots as usize));
    for part in strides(slots as usize) {
        budget.charge(part.len() as u64 * 2).await;
        for slot in part.start as u32..part.end as u32 {
            let changes = trace.changes_at(slot);
            let sizes = |block: u32| {
                (carving.sizes[block as usize].0, trace.blocks[block as usize].bytes.0)
            };
            for block in changes.iter().filter(|c| !c.enters()).map(|c| c.block()) {
                let (active, requested) = sizes(block);
                sweep.change(of[block as usize], |pool| {
                    pool.active = pool.active.wrapping_sub(active);
                    pool.requested = pool.requested.wrapping_sub(requested);
                });
            }
            while let Some(&(_, index)) = leaving.get(left).filter(|l| l.0 == slot) {
                left += 1;
                let span = spans[index as usize];
                sweep.change(span.pool, |pool| {
                    pool.reserved = pool.reserved.wrapping_sub(span.size.0)
                });
                if open.get(&span.address.0) == Some(&index) {
                    open.remove(&span.address.0);
                }
            }
            while let Some(span) = spans.get(entered).filter(|s| s.enters == slot) {
                open.insert(span.address.0, entered as u32);
                entered += 1;
                sweep.change(span.pool, |pool| {
                    pool.reserved = pool.reserved.wrapping_add(span.size.0)
                });
            }
            for block in changes.iter().filter(|c| c.enters()).map(|c| c.block()) {
                let known = &trace.blocks[block as usize];
                let pool = if known.pool == PoolIndex::UNKNOWN {
                    let before =
                        open.range(..=known.address.0).next_back().map(|(_, &i)| spans[i as usize]);
                    before
                        .filter(|s| known.address.0 < s.end())
                        .map_or(PoolIndex::UNKNOWN, |s| s.pool)
                } else {
                    known.pool
                };
                if !is_private(pool) {
                    continue;
                }
                of[block as usize] = pool;
                let (active, requested) = sizes(block);
                sweep.change(pool, |pool| {
                    pool.active = pool.active.wrapping_add(active);
                    pool.requested = pool.requested.wrapping_add(requested);
                });
            }
            sweep.settle();
            height.push(trace.requested.at(slot).saturating_add(sweep.unused));
            size.push(sweep.size);
        }
    }
    let pools = (0u16..).zip(&sweep.pools).filter(|(_, p)| p.seen).map(|(index, pool)| PoolPeak {
        pool: PoolIndex(index),
        reserved: Bytes(pool.most_reserved),
        active: Bytes(pool.most_active),
    });
    Some(PoolEnvelope { height, size, pools: pools.collect() })
}

/// A private pool at one moment, and the most that it had until then.
#[derive(Clone, Copy, Default)]
struct Pool {
    reserved: u64,
    active: u64,
    requested: u64,
    seen: bool,
    most_reserved: u64,
    most_active: u64,
}

impl Pool {
    fn size(&self) -> u64 {
        self.active.max(self.reserved)
    }

    /// What the stack does not draw of it.
    fn unused(&self) -> u64 {
        self.size().saturating_sub(self.requested)
    }
}

/// Sums over pools. A change is of one pool, so a slot costs what happens in it, however many pools
/// there are. Sums wrap: nonsense in a file is gone again when what made it is.
#[derive(Default)]
struct Sweep {
    pools: Vec<Pool>,
    size: u64,
    unused: u64,
    touched: Vec<PoolIndex>,
}

impl Sweep {
    /// Changes a private pool; nothing where it is none.
    fn change(&mut self, index: PoolIndex, by: impl FnOnce(&mut Pool)) {
        let Some(pool) = self.pools.get_mut(usize::from(index.0)) else { return };
        let before = *pool;
        by(pool);
        self.size = self.size.wrapping_sub(before.size()).wrapping_add(pool.size());
        self.unused = self.unused.wrapping_sub(before.unused()).wrapping_add(pool.unused());
        self.touched.push(index);
    }

    /// All changes of a slot are made: what is now is a state that was.
    fn settle(&mut self) {
        for index in self.touched.drain(..) {
            let pool = &mut self.pools[usize::from(index.0)];
            pool.seen = true;
            pool.most_reserved = pool.most_reserved.max(pool.reserved);
            pool.most_active = pool.most_active.max(pool.active);
        }
    }
}
