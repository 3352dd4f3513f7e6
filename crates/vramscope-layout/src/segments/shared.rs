//! Assignment of segments to the rows of the segments view.

use vramscope_snapshot::PoolIndex;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Span, sort};

/// The rows of the segments view, from the top down, and the spans in each row.
///
/// A program that releases segments and reserves them again, for example by calling
/// `torch.cuda.empty_cache()` in a loop, mostly gets the same addresses. With one row per segment
/// most of the screen would be empty, so such segments share a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowOrder {
    /// The spans of all rows, as indexes into
    /// [`Segments::spans`](vramscope_trace::Segments::spans).
    spans: Vec<u32>,
    /// End of each row in `spans`.
    ends: Vec<u32>,
    /// The lower edge of each row below the top of all rows, and its height, in quarters of the
    /// usual height.
    edges: Vec<(u32, u8)>,
}

/// The usual height of a row in quarters.
pub const ROW_QUARTERS: u8 = 4;

impl RowOrder {
    /// Groups all spans into rows, sorted by address. Spans that used one address range one after
    /// another share a row.
    pub async fn shared(spans: &[Span], budget: &mut Budget) -> Self {
        let mut all: Vec<([u64; 4], u32)> = Vec::with_capacity(spans.len());
        for part in strides(spans.len()) {
            budget.charge(2 * part.len() as u64).await;
            all.extend(part.map(|index| (place(&spans[index]), index as u32)));
        }
        sort(&mut all, budget).await;
        let mut order = Self::default();
        for part in strides(all.len()) {
            budget.charge(2 * part.len() as u64).await;
            for at in part {
                let (place, index) = all[at];
                let continues_row = |&(before, other): &([u64; 4], u32)| {
                    before == place && may_share_row(&spans[other as usize], &spans[index as usize])
                };
                if !at.checked_sub(1).is_some_and(|before| continues_row(&all[before])) {
                    order.begin(ROW_QUARTERS, 0);
                }
                order.spans.push(index);
                *order.ends.last_mut().expect("the first span begins a row") += 1;
            }
        }
        order
    }

    /// The spans that share a row with `span`, computed from the spans alone. `None` for an unknown
    /// span.
    pub fn row_with(spans: &[Span], span: u32) -> Option<Vec<u32>> {
        let wanted = place(spans.get(span as usize)?);
        let here: Vec<u32> =
            (0..spans.len() as u32).filter(|&s| place(&spans[s as usize]) == wanted).collect();
        let mut rows =
            here.chunk_by(|&a, &b| may_share_row(&spans[a as usize], &spans[b as usize]));
        rows.find(|row| row.contains(&span)).map(<[u32]>::to_vec)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of spans in all rows.
    pub fn spans(&self) -> usize {
        self.spans.len()
    }

    /// The spans of a row, ordered by time.
    pub fn row(&self, row: usize) -> &[u32] {
        let from = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.spans[from as usize..self.ends[row] as usize]
    }

    /// The row of a span. `None` for an unknown span.
    pub fn row_of(&self, span: u32) -> Option<usize> {
        let at = self.spans.iter().position(|&s| s == span)?;
        Some(self.ends.partition_point(|&end| end as usize <= at))
    }

    /// Adds a row of the usual height below the others.
    pub fn push(&mut self, spans: &[u32]) {
        self.push_sized(spans, ROW_QUARTERS, 0);
    }

    /// Adds a row of a height below the others, after a gap, in quarters of the usual height.
    pub fn push_sized(&mut self, spans: &[u32], height: u8, gap: u8) {
        self.begin(height, gap);
        self.spans.extend_from_slice(spans);
        *self.ends.last_mut().expect("the row has begun") = self.spans.len() as u32;
    }

    /// Begins a row without spans.
    fn begin(&mut self, height: u8, gap: u8) {
        self.ends.push(self.spans.len() as u32);
        let low = self.quarters() + u32::from(gap) + u32::from(height);
        self.edges.push((low, height));
    }

    /// The height of all rows in quarters of the usual height.
    pub(super) fn quarters(&self) -> u32 {
        self.edges.last().map_or(0, |&(low, _)| low)
    }

    /// The lower edge of a row below the top of all rows, and its height, in quarters.
    pub(super) fn edge(&self, row: usize) -> (u32, u8) {
        self.edges[row]
    }
}

/// The properties that spans of one row have in common. Spans are ordered by time, and no two spans
/// with one address are reserved at the same time.
fn place(span: &Span) -> [u64; 4] {
    [span.address.0, span.size.0, u64::from(span.is_expandable), u64::from(span.stream.0)]
}

/// Whether two consecutive spans of one place have the same segment type, and pools that may be
/// equal. Before PyTorch 2.12, snapshots name the pool only of segments that are reserved at the
/// end.
fn may_share_row(one: &Span, other: &Span) -> bool {
    let pools = [one.pool, other.pool];
    one.segment_type == other.segment_type
        && (pools[0] == pools[1] || pools.contains(&PoolIndex::UNKNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_snapshot::{SegmentType, StackId, StreamId};
    use vramscope_trace::slicing::now;
    use vramscope_units::{Addr, Bytes};

    fn span(address: u64, size: u64, enters: u32, pool: PoolIndex) -> Span {
        Span {
            address: Addr(address),
            size: Bytes(size),
            enters,
            leaves: enters + 1,
            is_expandable: false,
            stream: StreamId(0),
            pool,
            segment_type: SegmentType::Large,
            stack: StackId::EMPTY,
            event: None,
        }
    }

    #[test]
    fn rows_share_place_and_pool() {
        let (unknown, one, other) = (PoolIndex::UNKNOWN, PoolIndex(0), PoolIndex(1));
        let spans = [
            span(4096, 2, 0, unknown),
            span(8192, 2, 0, unknown),
            span(4096, 4, 1, unknown),
            span(8192, 2, 1, unknown),
            span(4096, 2, 2, one),
            span(8192, 2, 3, other),
            span(8192, 2, 4, one),
            Span { is_expandable: true, ..span(8192, 2, 5, one) },
            Span { stream: StreamId(1), ..span(8192, 2, 6, one) },
            Span { segment_type: SegmentType::Small, ..span(8192, 2, 7, one) },
        ];
        let order = now(async |budget| RowOrder::shared(&spans, budget).await);
        let rows: Vec<&[u32]> = (0..order.len()).map(|row| order.row(row)).collect();
        assert_eq!(rows, [&[0, 4][..], &[2], &[1, 3, 5], &[6], &[9], &[8], &[7]]);
        for (row, expected) in rows.iter().enumerate() {
            for &span in *expected {
                assert_eq!(order.row_of(span), Some(row));
                assert_eq!(RowOrder::row_with(&spans, span).as_deref(), Some(*expected));
            }
        }
        assert_eq!((order.len(), order.spans(), order.row_of(10)), (7, 10, None));
        assert!(RowOrder::row_with(&spans, 10).is_none());
        assert!(now(async |budget| RowOrder::shared(&[], budget).await).is_empty());
    }
}
