//! LRU cache of tiles: their strips and their GPU memory. Hit tests read the strips, and a restored
//! context uploads them again.

use std::collections::BTreeMap;

use vramscope_render::Strips;

use crate::tile::{Level, TileGeometry, TileKey};

/// Default capacity in strips: about 72 MB of main memory and the same amount of GPU memory.
const MAX_STRIPS: usize = 3 << 20;
/// Strips per chunk of GPU memory. The weight of a tile is a multiple of it.
const CHUNK_STRIPS: usize = 1024;

/// A cached tile. `G` is its handle in GPU memory.
#[derive(Debug)]
pub struct Tile<G> {
    strips: Strips,
    gpu: Option<G>,
    /// The last frame that drew the tile.
    used: u64,
    /// The content is outdated. The tile is drawn only until its replacement arrives.
    stale: bool,
}

impl<G> Tile<G> {
    /// The strips of the tile.
    pub fn strips(&self) -> &Strips {
        &self.strips
    }

    /// The handle in GPU memory. `None` before the upload.
    pub fn gpu(&self) -> Option<&G> {
        self.gpu.as_ref()
    }

    fn weight(&self) -> usize {
        weight(&self.strips)
    }
}

fn weight(strips: &Strips) -> usize {
    strips.len().next_multiple_of(CHUNK_STRIPS).max(CHUNK_STRIPS)
}

/// Tiles by key. The least recently drawn tiles are evicted first.
#[derive(Debug)]
pub struct Cache<G> {
    tiles: BTreeMap<TileKey, Tile<G>>,
    /// Number of drawable tiles per level.
    drawable: BTreeMap<Level, u32>,
    /// Tiles that are not in GPU memory yet, in upload order.
    waiting: Vec<TileKey>,
    /// GPU memory to free.
    released: Vec<G>,
    /// Total weight of all tiles in strips.
    weight: usize,
    /// Capacity in strips.
    capacity: usize,
    /// Number of the current frame.
    frame: u64,
}

impl<G> Default for Cache<G> {
    fn default() -> Self {
        Self::with_capacity(MAX_STRIPS)
    }
}

impl<G> Cache<G> {
    /// A cache with a capacity in strips.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            tiles: BTreeMap::new(),
            drawable: BTreeMap::new(),
            waiting: Vec::new(),
            released: Vec::new(),
            weight: 0,
            capacity,
            frame: 0,
        }
    }

    /// Inserts a tile, or replaces the one with this key. `home` is the level at which the whole
    /// trace is in view. Its tiles are evicted last, because they stand in for all others.
    pub fn put(&mut self, key: TileKey, strips: Strips, home: Level) {
        self.remove(key);
        self.evict_for(weight(&strips), home);
        self.weight += weight(&strips);
        // Counts as drawn in this frame: the tile was requested because it is in view.
        self.tiles.insert(key, Tile { strips, gpu: None, used: self.frame, stale: false });
        self.waiting.push(key);
    }

    fn evict_for(&mut self, weight: usize, home: Level) {
        while self.weight + weight > self.capacity {
            let frame = self.frame;
            let oldest = self
                .tiles
                .iter()
                .filter(|(_, tile)| tile.used < frame)
                .min_by_key(|(key, tile)| (key.level() == home, tile.used));
            // All tiles are on the screen, which may need more than the capacity.
            let Some((&key, _)) = oldest else { return };
            self.remove(key);
        }
    }

    fn remove(&mut self, key: TileKey) {
        let Some(tile) = self.tiles.remove(&key) else { return };
        self.weight -= tile.weight();
        self.waiting.retain(|waiting| *waiting != key);
        if let Some(gpu) = tile.gpu {
            self.released.push(gpu);
            if let Some(n) = self.drawable.get_mut(&key.level()) {
                *n -= 1;
                if *n == 0 {
                    self.drawable.remove(&key.level());
                }
            }
        }
    }

    /// The tile with this key.
    pub fn get(&self, key: TileKey) -> Option<&Tile<G>> {
        self.tiles.get(&key)
    }

    /// True when the cache has the tile and it is not stale. The tile may not be uploaded yet.
    pub fn contains(&self, key: TileKey) -> bool {
        self.tiles.get(&key).is_some_and(|tile| !tile.stale)
    }

    /// Marks all tiles as stale. They are drawn until their replacements arrive.
    pub fn mark_stale(&mut self) {
        for tile in self.tiles.values_mut() {
            tile.stale = true;
        }
    }

    /// True when the tile is in GPU memory.
    pub fn is_drawable(&self, key: TileKey) -> bool {
        self.tiles.get(&key).is_some_and(|tile| tile.gpu.is_some())
    }

    /// The levels with drawable tiles.
    pub fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        self.drawable.keys().copied()
    }

    /// Starts a new frame.
    pub fn begin_frame(&mut self) {
        self.frame += 1;
    }

    /// Marks a tile as drawn in this frame.
    pub fn touch(&mut self, key: TileKey) {
        if let Some(tile) = self.tiles.get_mut(&key) {
            tile.used = self.frame;
        }
    }

    /// Uploads tiles to the GPU, up to `budget` strips, so that no frame is late. The first tile is
    /// uploaded regardless of its size. Stops at the first failure. The failed tile is not retried.
    ///
    /// # Errors
    /// The first error of `upload`.
    pub fn upload<E>(
        &mut self,
        budget: usize,
        mut upload: impl FnMut(&Strips) -> Result<G, E>,
    ) -> Result<(), E> {
        let mut sent = 0;
        while let Some(&key) = self.waiting.first() {
            let Some(tile) = self.tiles.get_mut(&key) else {
                self.waiting.remove(0);
                continue;
            };
            if sent > 0 && sent + tile.strips.len() > budget {
                return Ok(());
            }
            sent += tile.strips.len().max(1);
            self.waiting.remove(0);
            tile.gpu = Some(upload(&tile.strips)?);
            *self.drawable.entry(key.level()).or_default() += 1;
        }
        Ok(())
    }

    /// True when tiles are waiting for upload.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the GPU memory to free.
    pub fn take_released(&mut self) -> impl Iterator<Item = G> + '_ {
        self.released.drain(..)
    }

    /// Queues all tiles for upload after the GPU memory was lost. The most recently drawn tile goes
    /// first.
    pub fn forget_gpu(&mut self) {
        self.released.clear();
        self.drawable.clear();
        let mut keys: Vec<(u64, TileKey)> = Vec::with_capacity(self.tiles.len());
        for (key, tile) in &mut self.tiles {
            tile.gpu = None;
            keys.push((u64::MAX - tile.used, *key));
        }
        keys.sort_unstable();
        self.waiting.clear();
        self.waiting.extend(keys.into_iter().map(|(_, key)| key));
    }

    /// Removes all tiles.
    pub fn clear(&mut self) {
        let tiles = std::mem::take(&mut self.tiles);
        self.released.extend(tiles.into_values().filter_map(|tile| tile.gpu));
        self.drawable.clear();
        self.waiting.clear();
        self.weight = 0;
    }

    /// Number of tiles.
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// True when there are no tiles.
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use vramscope_render::{Color, Strips};

    use super::Cache;
    use crate::tile::{Level, TileKey};

    const HOME: Level = Level { kx: 9, ky: 9 };
    const NEAR: Level = Level { kx: 0, ky: 0 };

    fn strips(n: usize) -> Strips {
        let mut strips = Strips::default();
        for _ in 0..n {
            strips.push([0.0, 0.0, 1.0, 1.0], Color::NO_STACK, 0);
        }
        strips
    }

    fn upload_all(cache: &mut Cache<usize>) {
        let done: Result<(), Infallible> = cache.upload(usize::MAX, |strips| Ok(strips.len()));
        assert_eq!(done, Ok(()));
    }

    fn keys(cache: &Cache<usize>) -> Vec<TileKey> {
        (0..9)
            .flat_map(|i| [HOME.tile(i, 0), NEAR.tile(i, 0)])
            .filter(|key| cache.contains(*key))
            .collect()
    }

    #[test]
    fn put_evicts_least_recently_drawn_first_and_home_last() {
        let mut cache = Cache::with_capacity(4 * 1024);
        cache.put(HOME.tile(0, 0), strips(10), HOME);
        for i in 0..3 {
            cache.begin_frame();
            cache.put(NEAR.tile(i, 0), strips(1000), HOME);
        }
        upload_all(&mut cache);
        cache.begin_frame();
        cache.touch(NEAR.tile(0, 0));
        cache.put(NEAR.tile(3, 0), strips(1), HOME);
        assert_eq!(
            keys(&cache),
            [HOME.tile(0, 0), NEAR.tile(0, 0), NEAR.tile(2, 0), NEAR.tile(3, 0)]
        );
        assert_eq!(cache.take_released().collect::<Vec<_>>(), [1000]);
    }

    #[test]
    fn tiles_on_screen_are_kept_above_capacity() {
        let mut cache: Cache<usize> = Cache::with_capacity(2048);
        for i in 0..5 {
            cache.put(NEAR.tile(i, 0), strips(1024), HOME);
        }
        assert_eq!(cache.len(), 5);
        cache.begin_frame();
        cache.put(NEAR.tile(5, 0), strips(1024), HOME);
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn uploads_follow_budget_and_order() {
        let mut cache = Cache::default();
        for (i, n) in [700, 200, 200, 0].into_iter().enumerate() {
            cache.put(NEAR.tile(i as u32, 0), strips(n), HOME);
        }
        let mut sent = Vec::new();
        let mut frame = |cache: &mut Cache<usize>| {
            let done: Result<(), Infallible> = cache.upload(500, |strips| {
                sent.push(strips.len());
                Ok(strips.len())
            });
            assert_eq!(done, Ok(()));
            sent.len()
        };
        assert_eq!(frame(&mut cache), 1, "the first tile may exceed the budget");
        assert!(
            cache.has_waiting()
                && cache.is_drawable(NEAR.tile(0, 0))
                && !cache.is_drawable(NEAR.tile(1, 0))
        );
        assert_eq!(frame(&mut cache), 4);
        assert!(!cache.has_waiting());
        assert_eq!(cache.levels().collect::<Vec<_>>(), [NEAR]);
    }

    #[test]
    fn failed_uploads_are_not_retried() {
        let mut cache: Cache<usize> = Cache::default();
        cache.put(NEAR.tile(0, 0), strips(1), HOME);
        assert_eq!(cache.upload(10, |_| Err("no memory")), Err("no memory"));
        assert!(!cache.has_waiting() && cache.contains(NEAR.tile(0, 0)));
    }

    #[test]
    fn forget_gpu_queues_all_tiles_for_upload() {
        let mut cache = Cache::default();
        for i in 0..3 {
            cache.begin_frame();
            cache.put(NEAR.tile(i, 0), strips(i as usize + 1), HOME);
        }
        upload_all(&mut cache);
        cache.forget_gpu();
        assert_eq!((cache.levels().count(), cache.take_released().count()), (0, 0));
        let mut order = Vec::new();
        let done: Result<(), Infallible> = cache.upload(usize::MAX, |strips| {
            order.push(strips.len());
            Ok(0)
        });
        assert_eq!((done, order), (Ok(()), vec![3, 2, 1]));
    }

    #[test]
    fn stale_tiles_are_drawable_but_not_contained() {
        let mut cache = Cache::default();
        let key = HOME.tile(0, 0);
        cache.put(key, strips(5), HOME);
        upload_all(&mut cache);
        cache.mark_stale();
        assert!(cache.is_drawable(key) && !cache.contains(key));
        cache.put(key, strips(6), HOME);
        assert!(cache.contains(key));
    }

    #[test]
    fn put_replaces_a_tile_with_the_same_key() {
        let mut cache = Cache::default();
        cache.put(NEAR.tile(0, 0), strips(5), HOME);
        upload_all(&mut cache);
        cache.put(NEAR.tile(0, 0), strips(7), HOME);
        assert_eq!((cache.len(), cache.take_released().collect::<Vec<_>>()), (1, vec![5]));
        assert!(!cache.is_drawable(NEAR.tile(0, 0)));
        cache.clear();
        assert!(cache.is_empty() && !cache.has_waiting());
    }
}
