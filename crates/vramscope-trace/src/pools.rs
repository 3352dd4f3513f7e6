//! Private memory pools: the memory that they hold in every slot.
//!
//! A private pool belongs to a CUDA graph, or was created by the program. Its memory serves nothing
//! else, whether live or not. Blocks that a graph reuses when it is replayed count as free. So the
//! envelope of the stack counts each private pool as a whole in place of its blocks.
use crate::carving::Carving;
use crate::segments::Span;
use crate::series::Series;
use crate::slicing::{Boxed, Budget, STRIDE, filled, strides};
use crate::trace::Trace;
use std::collections::BTreeMap;
use vramscope_snapshot::{PoolId, PoolIndex, Snapshot};
use vramscope_units::Bytes;

/// The private pools of a device's window.
///
/// The size of a pool is the larger of its active bytes (sizes of its blocks from `alloc` to
/// `free_completed`) and its reserved bytes (sizes of its segments). Reserved bytes are the larger,
/// unless the file lacks segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolEnvelope {
    /// `requested_bytes` in every slot, with the size of each private pool in place of the
    /// requested bytes of its blocks. Never below `requested_bytes`.
    pub height: Series,
    /// Total size of all private pools in every slot.
    pub size: Series,
    /// The pools, in the file's order.
    pub pools: Vec<PoolPeak>,
}

/// The peaks of one private pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPeak {
    /// The pool.
    pub pool: PoolIndex,
    /// Peak of its reserved bytes.
    pub reserved: Bytes,
    /// Peak of its active bytes.
    pub active: Bytes,
}

/// The memory of a device's private pools in every slot. `None` if the device has no private pool.
///
/// A block belongs to the pool that its event names, or else to the pool of the segment around it
/// when it enters. Segments without a pool in the file count toward the default pool. Before
/// PyTorch 2.12 these are the segments that are released before the end.
#[inline(never)]
pub fn pool_envelope<'a>(
    trace: &'a Trace,
    carving: &'a Carving,
    snapshot: &'a Snapshot,
    budget: &'a mut Budget,
) -> Boxed<'a, Option<PoolEnvelope>> {
    Box::pin(async move {
        let is_private =
            |pool: PoolIndex| snapshot.pool(pool).is_some_and(|id| id != PoolId::DEFAULT);
        let slots = trace.slots();
        // Spans are in the order in which they enter.
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
        // Positions in `spans` and in `leaving` up to which spans have entered and left.
        let (mut next_entering, mut next_leaving) = (0, 0);
        // Reserved private spans by address.
        let mut open: BTreeMap<u64, u32> = BTreeMap::new();
        // The private pool of every block that has entered.
        let mut pool_of = filled(PoolIndex::UNKNOWN, trace.blocks.len(), budget).await;
        let mut totals = PoolTotals {
            pools: vec![Pool::default(); snapshot.pools.len()],
            ..PoolTotals::default()
        };
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
                    totals.change(pool_of[block as usize], |pool| {
                        pool.active = pool.active.wrapping_sub(active);
                        pool.requested = pool.requested.wrapping_sub(requested);
                    });
                }
                while let Some(&(_, index)) = leaving.get(next_leaving).filter(|l| l.0 == slot) {
                    next_leaving += 1;
                    let span = spans[index as usize];
                    totals.change(span.pool, |pool| {
                        pool.reserved = pool.reserved.wrapping_sub(span.size.0);
                    });
                    if open.get(&span.address.0) == Some(&index) {
                        open.remove(&span.address.0);
                    }
                }
                while let Some(span) = spans.get(next_entering).filter(|s| s.enters == slot) {
                    open.insert(span.address.0, next_entering as u32);
                    next_entering += 1;
                    totals.change(span.pool, |pool| {
                        pool.reserved = pool.reserved.wrapping_add(span.size.0);
                    });
                }
                for block in changes.iter().filter(|c| c.enters()).map(|c| c.block()) {
                    let known = &trace.blocks[block as usize];
                    let pool = if known.pool == PoolIndex::UNKNOWN {
                        let before = open
                            .range(..=known.address.0)
                            .next_back()
                            .map(|(_, &i)| spans[i as usize]);
                        before
                            .filter(|s| known.address.0 < s.end())
                            .map_or(PoolIndex::UNKNOWN, |s| s.pool)
                    } else {
                        known.pool
                    };
                    if !is_private(pool) {
                        continue;
                    }
                    pool_of[block as usize] = pool;
                    let (active, requested) = sizes(block);
                    totals.change(pool, |pool| {
                        pool.active = pool.active.wrapping_add(active);
                        pool.requested = pool.requested.wrapping_add(requested);
                    });
                }
                totals.update_peaks();
                height.push(trace.requested.at(slot).saturating_add(totals.unused));
                size.push(totals.size);
            }
        }
        let seen = (0u16..).zip(&totals.pools).filter(|(_, p)| p.is_seen);
        let pools = seen.map(|(index, pool)| PoolPeak {
            pool: PoolIndex(index),
            reserved: Bytes(pool.peak_reserved),
            active: Bytes(pool.peak_active),
        });
        Some(PoolEnvelope { height, size, pools: pools.collect() })
    })
}

/// A private pool in one slot, with its peaks until then. In bytes.
#[derive(Clone, Copy, Default)]
struct Pool {
    reserved: u64,
    active: u64,
    requested: u64,
    /// Whether the pool ever changed.
    is_seen: bool,
    peak_reserved: u64,
    peak_active: u64,
}

impl Pool {
    fn size(&self) -> u64 {
        self.active.max(self.reserved)
    }

    /// The part of the pool that the requested bytes of its blocks do not cover.
    fn unused(&self) -> u64 {
        self.size().saturating_sub(self.requested)
    }
}

/// Running totals over all pools.
///
/// A change touches one pool, so the cost of a slot does not depend on the number of pools. Sums
/// wrap, so a nonsensical size in a file has no effect after its block has left.
#[derive(Default)]
struct PoolTotals {
    pools: Vec<Pool>,
    /// Sum of [`Pool::size`].
    size: u64,
    /// Sum of [`Pool::unused`].
    unused: u64,
    /// Pools that changed in the current slot.
    changed: Vec<PoolIndex>,
}

impl PoolTotals {
    /// Changes a pool. Does nothing for [`PoolIndex::UNKNOWN`].
    fn change(&mut self, index: PoolIndex, by: impl FnOnce(&mut Pool)) {
        let Some(pool) = self.pools.get_mut(usize::from(index.0)) else { return };
        let before = *pool;
        by(pool);
        self.size = self.size.wrapping_sub(before.size()).wrapping_add(pool.size());
        self.unused = self.unused.wrapping_sub(before.unused()).wrapping_add(pool.unused());
        self.changed.push(index);
    }

    /// Updates the peaks, after all changes of a slot. States within a slot never existed.
    fn update_peaks(&mut self) {
        for index in self.changed.drain(..) {
            let pool = &mut self.pools[usize::from(index.0)];
            pool.is_seen = true;
            pool.peak_reserved = pool.peak_reserved.max(pool.reserved);
            pool.peak_active = pool.peak_active.max(pool.active);
        }
    }
}
