//! The private pool of a block. Traces before PyTorch 2.12 name no pools; the final segments do.
use vramscope_snapshot::{PoolId, PoolIndex, Snapshot};
use vramscope_trace::Carving;

/// The segments of private pools, by address.
pub(crate) struct PrivateSpans(Vec<PrivateSpan>);

struct PrivateSpan {
    start: u64,
    end: u64,
    enters: u32,
    leaves: u32,
    pool: u32,
}

/// The number of a pool for the allocator: 0 for the default pool, else one more than its index.
fn number(snapshot: &Snapshot, pool: PoolIndex) -> u32 {
    match snapshot.pool(pool) {
        Some(id) if id != PoolId::DEFAULT => u32::from(pool.0) + 1,
        _ => 0,
    }
}

impl PrivateSpans {
    pub(crate) fn of(snapshot: &Snapshot, carving: &Carving) -> Self {
        let spans = carving.segments.spans.iter().filter_map(|span| {
            let pool = number(snapshot, span.pool);
            (pool != 0).then(|| PrivateSpan {
                start: span.address.0,
                end: span.end(),
                enters: span.enters,
                leaves: span.leaves,
                pool,
            })
        });
        let mut spans: Vec<PrivateSpan> = spans.collect();
        spans.sort_by_key(|span| (span.start, span.enters));
        Self(spans)
    }

    /// The number of the pool of an address in a slot: that which the file names, else that of the
    /// segment.
    pub(crate) fn pool(
        &self,
        snapshot: &Snapshot,
        named: PoolIndex,
        address: u64,
        slot: u32,
    ) -> u32 {
        if named != PoolIndex::UNKNOWN {
            return number(snapshot, named);
        }
        let until = self.0.partition_point(|span| span.start <= address);
        // Spans at one address follow each other. A few lie between those of other lives.
        let near = self.0[..until].iter().rev().take_while(|span| address < span.end);
        let at = near.filter(|span| span.enters <= slot && slot < span.leaves);
        at.map(|span| span.pool).next().unwrap_or(0)
    }
}
