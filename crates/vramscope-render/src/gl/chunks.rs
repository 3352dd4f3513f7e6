//! Which rows of which page are free.
//!
//! A chunk is a row of a page's textures: room for 1024 strips. A tile takes as many as it needs,
//! wherever they are, so nothing ever has to be moved; those that happen to lie in a row are
//! uploaded with one call.

/// Strips in a chunk: a row of the textures, and the quads of one instance.
pub(super) const CHUNK: usize = 1024;
/// Chunks in a page: half a million strips, 12 MiB of textures.
pub(super) const PAGE: u32 = 512;

/// A chunk's number: `page * PAGE + row`.
pub(super) type Chunk = u32;

/// The free chunks of all pages.
#[derive(Debug, Default)]
pub(super) struct FreeChunks {
    /// Highest first, so that taking from the end gives neighbors in rising order.
    free: Vec<Chunk>,
    pages: u32,
}

impl FreeChunks {
    /// How many pages it takes to give `n` more chunks.
    pub(super) fn pages_for(&self, n: usize) -> u32 {
        let missing = n.saturating_sub(self.free.len());
        self.pages + (missing as u32).div_ceil(PAGE)
    }

    /// Tells of a new page.
    pub(super) fn add_page(&mut self) {
        let first = self.pages * PAGE;
        self.pages += 1;
        self.free.extend(first..first + PAGE);
        self.sort();
    }

    /// Takes `n` chunks, in rising order; there must be as many.
    pub(super) fn take(&mut self, n: usize) -> Vec<Chunk> {
        let mut taken = self.free.split_off(self.free.len() - n);
        taken.reverse();
        taken
    }

    /// Gives chunks back.
    pub(super) fn give(&mut self, chunks: Vec<Chunk>) {
        self.free.extend(chunks);
        self.sort();
    }

    fn sort(&mut self) {
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// The stretches of neighbors within a page: `(first, how many)`.
pub(super) fn runs(chunks: &[Chunk]) -> impl Iterator<Item = (Chunk, u32)> + '_ {
    chunks
        .chunk_by(|a, b| *b == *a + 1 && !b.is_multiple_of(PAGE))
        .map(|run| (run[0], run.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::{FreeChunks, PAGE, runs};

    #[test]
    fn chunks_come_in_order_and_are_used_again() {
        let mut free = FreeChunks::default();
        assert_eq!(free.pages_for(3), 1);
        free.add_page();
        let a = free.take(3);
        let b = free.take(2);
        assert_eq!((a.as_slice(), b.as_slice()), (&[0, 1, 2][..], &[3, 4][..]));
        free.give(a);
        assert_eq!(free.take(4), [0, 1, 2, 5]);
        assert_eq!(free.pages_for(PAGE as usize - 6), 1);
        assert_eq!(free.pages_for(PAGE as usize - 5), 2);
    }

    #[test]
    fn runs_end_at_gaps_and_at_pages() {
        let chunks = [3, 4, 5, 9, PAGE - 1, PAGE, PAGE + 1];
        assert_eq!(runs(&chunks).collect::<Vec<_>>(), [(3, 3), (9, 1), (PAGE - 1, 1), (PAGE, 2)]);
    }
}
