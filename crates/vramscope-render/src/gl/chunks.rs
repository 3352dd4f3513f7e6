//! The allocator for rows of the page textures.
//!
//! A chunk is one row of the textures of a page, with space for 1,024 strips. A tile uses any free
//! chunks, so no data is ever moved. Adjacent chunks are uploaded with one call.

/// Strips per chunk: the width of the textures, and the quads of one instance.
pub(super) const CHUNK_STRIPS: usize = 1024;
/// Chunks per page: half a million strips, 12 MiB of textures.
pub(super) const PAGE_CHUNKS: u32 = 512;

/// Number of a chunk: `page * PAGE_CHUNKS + row`.
pub(super) type Chunk = u32;

/// The free chunks of all pages.
#[derive(Debug, Default)]
pub(super) struct FreeChunks {
    /// In descending order, so that taking from the end gives adjacent chunks.
    free: Vec<Chunk>,
    pages: u32,
}

impl FreeChunks {
    /// Number of pages needed to take `n` more chunks.
    pub(super) fn pages_for(&self, n: usize) -> u32 {
        let missing = n.saturating_sub(self.free.len());
        self.pages + (missing as u32).div_ceil(PAGE_CHUNKS)
    }

    /// Adds the chunks of a new page.
    pub(super) fn add_page(&mut self) {
        let first = self.pages * PAGE_CHUNKS;
        self.pages += 1;
        self.free.extend(first..first + PAGE_CHUNKS);
        self.sort();
    }

    /// Takes `n` chunks in ascending order. At least `n` must be free.
    pub(super) fn take(&mut self, n: usize) -> Vec<Chunk> {
        let mut taken = self.free.split_off(self.free.len() - n);
        taken.reverse();
        taken
    }

    /// Returns chunks.
    pub(super) fn give(&mut self, chunks: Vec<Chunk>) {
        self.free.extend(chunks);
        self.sort();
    }

    fn sort(&mut self) {
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// Runs of adjacent chunks within a page, as `(first, count)`.
pub(super) fn runs(chunks: &[Chunk]) -> impl Iterator<Item = (Chunk, u32)> + '_ {
    chunks
        .chunk_by(|a, b| *b == *a + 1 && !b.is_multiple_of(PAGE_CHUNKS))
        .map(|run| (run[0], run.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::{FreeChunks, PAGE_CHUNKS, runs};

    #[test]
    fn take_reuses_the_lowest_chunks_in_order() {
        let mut free = FreeChunks::default();
        assert_eq!(free.pages_for(3), 1);
        free.add_page();
        let a = free.take(3);
        let b = free.take(2);
        assert_eq!((a.as_slice(), b.as_slice()), (&[0, 1, 2][..], &[3, 4][..]));
        free.give(a);
        assert_eq!(free.take(4), [0, 1, 2, 5]);
        assert_eq!(free.pages_for(PAGE_CHUNKS as usize - 6), 1);
        assert_eq!(free.pages_for(PAGE_CHUNKS as usize - 5), 2);
    }

    #[test]
    fn runs_end_at_gaps_and_at_pages() {
        let chunks = [3, 4, 5, 9, PAGE_CHUNKS - 1, PAGE_CHUNKS, PAGE_CHUNKS + 1];
        assert_eq!(
            runs(&chunks).collect::<Vec<_>>(),
            [(3, 3), (9, 1), (PAGE_CHUNKS - 1, 1), (PAGE_CHUNKS, 2)]
        );
    }
}
