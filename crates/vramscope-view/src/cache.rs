//! The tiles that have arrived: their columns, which hit tests read and a restored context uploads
//! anew, and their places in the GPU's memory.

use std::collections::BTreeMap;

use vramscope_render::Strips;

use crate::tile::{Level, TileKey};

/// What the cache holds at most, in strips: about 72 MB here and as much in the GPU's memory.
const MOST: usize = 3 << 20;
/// A tile takes at least this much, since the GPU's memory is given out in chunks of so many
/// strips.
const LEAST: usize = 1024;

/// A tile that is here. `G` is its place in the GPU's memory.
#[derive(Debug)]
pub struct Tile<G> {
    strips: Strips,
    gpu: Option<G>,
    used: u64,
    /// It shows something else than what is wanted now, and is drawn only until that has come.
    stale: bool,
}

impl<G> Tile<G> {
    /// Its columns.
    pub fn strips(&self) -> &Strips {
        &self.strips
    }

    /// Its place in the GPU's memory, once it is there.
    pub fn gpu(&self) -> Option<&G> {
        self.gpu.as_ref()
    }

    fn weight(&self) -> usize {
        weight(&self.strips)
    }
}

fn weight(strips: &Strips) -> usize {
    strips.len().next_multiple_of(LEAST).max(LEAST)
}

/// Tiles by key; the least recently drawn leave first.
#[derive(Debug)]
pub struct Cache<G> {
    tiles: BTreeMap<TileKey, Tile<G>>,
    /// How many tiles of each level can be drawn.
    drawable: BTreeMap<Level, u32>,
    /// Arrived, and not yet in the GPU's memory; the first goes first.
    waiting: Vec<TileKey>,
    /// Places in the GPU's memory that nobody needs any more.
    released: Vec<G>,
    weight: usize,
    most: usize,
    clock: u64,
}

impl<G> Default for Cache<G> {
    fn default() -> Self {
        Self::with_most(MOST)
    }
}

impl<G> Cache<G> {
    /// A cache of at most so many strips.
    pub fn with_most(most: usize) -> Self {
        Self {
            tiles: BTreeMap::new(),
            drawable: BTreeMap::new(),
            waiting: Vec::new(),
            released: Vec::new(),
            weight: 0,
            most,
            clock: 0,
        }
    }

    /// Takes a tile; one with the same key is replaced. `home` is the level of the whole view,
    /// whose tiles leave last: they stand in for all others.
    pub fn put(&mut self, key: TileKey, strips: Strips, home: Level) {
        self.remove(key);
        self.make_room(weight(&strips), home);
        self.weight += weight(&strips);
        // As if drawn in this frame: it was asked for because it is in view.
        self.tiles.insert(key, Tile { strips, gpu: None, used: self.clock, stale: false });
        self.waiting.push(key);
    }

    fn make_room(&mut self, weight: usize, home: Level) {
        while self.weight + weight > self.most {
            let clock = self.clock;
            let oldest = self
                .tiles
                .iter()
                .filter(|(_, tile)| tile.used < clock)
                .min_by_key(|(key, tile)| (key.level() == home, tile.used));
            // All are on the screen: a screen may have more than the cache holds.
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

    /// True when the tile is here, drawable or not, and shows what is wanted.
    pub fn contains(&self, key: TileKey) -> bool {
        self.tiles.get(&key).is_some_and(|tile| !tile.stale)
    }

    /// Tiles show something else from now on. The old ones stand in until the new ones are there.
    pub fn expire(&mut self) {
        for tile in self.tiles.values_mut() {
            tile.stale = true;
        }
    }

    /// True when the tile is in the GPU's memory.
    pub fn drawable(&self, key: TileKey) -> bool {
        self.tiles.get(&key).is_some_and(|tile| tile.gpu.is_some())
    }

    /// The levels of which tiles can be drawn.
    pub fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        self.drawable.keys().copied()
    }

    /// A new frame begins.
    pub fn tick(&mut self) {
        self.clock += 1;
    }

    /// This tile is drawn in this frame.
    pub fn touch(&mut self, key: TileKey) {
        if let Some(tile) = self.tiles.get_mut(&key) {
            tile.used = self.clock;
        }
    }

    /// Sends tiles to the GPU until `budget` strips are sent, the first whatever its size, so that
    /// no frame is late for them. Gives the first failure; the tile that failed is not tried again.
    ///
    /// # Errors
    /// What `upload` says.
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

    /// True while there is something to upload.
    pub fn waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Places in the GPU's memory to give back.
    pub fn released(&mut self) -> impl Iterator<Item = G> + '_ {
        self.released.drain(..)
    }

    /// The GPU has lost everything: all tiles wait for upload, the most recently drawn first.
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

    /// Forgets all tiles.
    pub fn clear(&mut self) {
        let tiles = std::mem::take(&mut self.tiles);
        self.released.extend(tiles.into_values().filter_map(|tile| tile.gpu));
        self.drawable.clear();
        self.waiting.clear();
        self.weight = 0;
    }

    /// How many tiles there are.
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// True when there are none.
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
    fn the_least_recently_drawn_leave_first_and_the_whole_view_last() {
        let mut cache = Cache::with_most(4 * 1024);
        cache.put(HOME.tile(0, 0), strips(10), HOME);
        for i in 0..3 {
            cache.tick();
            cache.put(NEAR.tile(i, 0), strips(1000), HOME);
        }
        upload_all(&mut cache);
        cache.tick();
        cache.touch(NEAR.tile(0, 0));
        cache.put(NEAR.tile(3, 0), strips(1), HOME);
        assert_eq!(
            keys(&cache),
            [HOME.tile(0, 0), NEAR.tile(0, 0), NEAR.tile(2, 0), NEAR.tile(3, 0)]
        );
        assert_eq!(cache.released().collect::<Vec<_>>(), [1000]);
    }

    #[test]
    fn what_is_on_the_screen_stays_even_when_it_is_too_much() {
        let mut cache: Cache<usize> = Cache::with_most(2048);
        for i in 0..5 {
            cache.put(NEAR.tile(i, 0), strips(1024), HOME);
        }
        assert_eq!(cache.len(), 5);
        cache.tick();
        cache.put(NEAR.tile(5, 0), strips(1024), HOME);
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn uploads_keep_to_the_budget_and_to_their_order() {
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
        assert_eq!(frame(&mut cache), 1, "more than the budget, but the first");
        assert!(
            cache.waiting() && cache.drawable(NEAR.tile(0, 0)) && !cache.drawable(NEAR.tile(1, 0))
        );
        assert_eq!(frame(&mut cache), 4);
        assert!(!cache.waiting());
        assert_eq!(cache.levels().collect::<Vec<_>>(), [NEAR]);
    }

    #[test]
    fn a_tile_that_fails_is_not_tried_for_ever() {
        let mut cache: Cache<usize> = Cache::default();
        cache.put(NEAR.tile(0, 0), strips(1), HOME);
        assert_eq!(cache.upload(10, |_| Err("no memory")), Err("no memory"));
        assert!(!cache.waiting() && cache.contains(NEAR.tile(0, 0)));
    }

    #[test]
    fn a_lost_context_makes_all_tiles_wait_again() {
        let mut cache = Cache::default();
        for i in 0..3 {
            cache.tick();
            cache.put(NEAR.tile(i, 0), strips(i as usize + 1), HOME);
        }
        upload_all(&mut cache);
        cache.forget_gpu();
        assert_eq!((cache.levels().count(), cache.released().count()), (0, 0));
        let mut order = Vec::new();
        let done: Result<(), Infallible> = cache.upload(usize::MAX, |strips| {
            order.push(strips.len());
            Ok(0)
        });
        assert_eq!((done, order), (Ok(()), vec![3, 2, 1]));
    }

    #[test]
    fn what_has_expired_is_drawn_and_not_there() {
        let mut cache = Cache::default();
        let key = HOME.tile(0, 0);
        cache.put(key, strips(5), HOME);
        upload_all(&mut cache);
        cache.expire();
        assert!(cache.drawable(key) && !cache.contains(key));
        cache.put(key, strips(6), HOME);
        assert!(cache.contains(key));
    }

    #[test]
    fn a_tile_that_comes_twice_is_one() {
        let mut cache = Cache::default();
        cache.put(NEAR.tile(0, 0), strips(5), HOME);
        upload_all(&mut cache);
        cache.put(NEAR.tile(0, 0), strips(7), HOME);
        assert_eq!((cache.len(), cache.released().collect::<Vec<_>>()), (1, vec![5]));
        assert!(!cache.drawable(NEAR.tile(0, 0)));
        cache.clear();
        assert!(cache.is_empty() && !cache.waiting());
    }
}
