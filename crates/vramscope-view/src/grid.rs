//! Selects the tiles that a view needs, and stand-ins for tiles that have not arrived.

use std::ops::Range;

use crate::tile::{Area, Level, TileGeometry, TileKey, power};

/// Maximum number of tiles of a finer level that stand in for one tile. More tiles are too small to
/// be worth the search.
const MAX_FINER_TILES: u64 = 16;
/// Maximum log2 of how much coarser a stand-in may be, summed over both directions.
const MAX_COARSER_LOG2: i32 = 20;
/// Maximum log2 of a column's slots or a row's bytes. Up to this, positions are exact in `f64`.
const MAX_LOG2: u8 = 48;

/// The level for a view of `width` by `height` device pixels.
///
/// Columns are the finest of at least one pixel, because some narrower columns would be skipped.
/// Rows are the coarsest of at most one pixel, so that tiles are as low as possible.
pub fn level(view: &Area, [width, height]: [f64; 2]) -> Level {
    let (slots, bytes) = (view.width() / width, view.height() / height);
    let kx = (0..MAX_LOG2).find(|k| power(*k) >= slots).unwrap_or(MAX_LOG2);
    let ky = (0..MAX_LOG2).take_while(|k| power(*k) <= bytes).last().unwrap_or(0);
    Level { kx, ky }
}

/// The tiles of a level that intersect an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    level: Level,
    ix: Range<u32>,
    iy: Range<u32>,
}

impl Cells {
    /// The tiles of `level` that intersect `area`. None for an empty area.
    pub fn of(area: &Area, level: Level) -> Self {
        if area.is_empty() {
            return Self { level, ix: 0..0, iy: 0..0 };
        }
        let [w, h] = level.tile_size();
        let range =
            |lo: f64, hi: f64, size: f64| (lo / size).floor() as u32..(hi / size).ceil() as u32;
        Self { level, ix: range(area.x0, area.x1, w), iy: range(area.y0, area.y1, h) }
    }

    /// Number of tiles.
    pub fn len(&self) -> u64 {
        self.ix.len() as u64 * self.iy.len() as u64
    }

    /// True when there are no tiles.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tiles, row by row.
    pub fn iter(&self) -> impl Iterator<Item = TileKey> + '_ {
        self.iy.clone().flat_map(move |iy| self.ix.clone().map(move |ix| self.level.tile(ix, iy)))
    }
}

/// Sorts tiles of one level by their distance to a point in slots and bytes, nearest first.
pub fn nearest_first(keys: &mut [TileKey], [slot, bytes]: [f64; 2]) {
    let distance = |key: &TileKey| {
        let area = key.area();
        // In units of tiles, which have similar widths and heights on the screen.
        let dx = (f64::midpoint(area.x0, area.x1) - slot) / area.width();
        let dy = (f64::midpoint(area.y0, area.y1) - bytes) / area.height();
        dx * dx + dy * dy
    };
    keys.sort_unstable_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b)));
}

/// A tile, and the part of it that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TilePiece {
    /// The tile.
    pub key: TileKey,
    /// The part of the tile that is drawn.
    pub clip: Area,
}

/// Selects the tiles to draw. Keeps its scratch space between frames.
#[derive(Debug, Default)]
pub struct Planner {
    levels: Vec<Level>,
    trial: Vec<TilePiece>,
    best: Vec<TilePiece>,
}

impl Planner {
    /// Covers `area`, the part of the view with data, with tiles of `level`. Pieces do not overlap.
    ///
    /// A missing tile is replaced by drawable tiles of the nearest level that covers it completely.
    /// If there is no such level, the level that covers most of it is used. `levels` are all levels
    /// with drawable tiles.
    pub fn plan(
        &mut self,
        area: &Area,
        level: Level,
        levels: impl Iterator<Item = Level>,
        drawable: impl Fn(TileKey) -> bool,
        pieces: &mut Vec<TilePiece>,
    ) {
        pieces.clear();
        self.levels.clear();
        let mut levels = Some(levels);
        for key in Cells::of(area, level).iter() {
            let cell = key.area().and(area);
            if drawable(key) {
                pieces.push(TilePiece { key, clip: cell });
                continue;
            }
            if let Some(levels) = levels.take() {
                self.levels.extend(levels.filter(|other| can_stand_in(level, *other)));
                self.levels.sort_unstable_by_key(|other| (distance(level, *other), *other));
            }
            self.best.clear();
            let mut best_area = 0.0;
            for other in &self.levels {
                let cells = Cells::of(&cell, *other);
                if cells.len() > MAX_FINER_TILES {
                    continue;
                }
                self.trial.clear();
                self.trial.extend(
                    cells
                        .iter()
                        .filter(|k| drawable(*k))
                        .map(|key| TilePiece { key, clip: key.area().and(&cell) }),
                );
                let covered: f64 =
                    self.trial.iter().map(|p| p.clip.width() * p.clip.height()).sum();
                if covered > best_area {
                    best_area = covered;
                    std::mem::swap(&mut self.best, &mut self.trial);
                }
                if self.best.len() as u64 == cells.len() {
                    break;
                }
            }
            pieces.append(&mut self.best);
        }
    }
}

fn log2_difference(wanted: Level, other: Level) -> (i32, i32) {
    (i32::from(other.kx) - i32::from(wanted.kx), i32::from(other.ky) - i32::from(wanted.ky))
}

fn can_stand_in(wanted: Level, other: Level) -> bool {
    let (x, y) = log2_difference(wanted, other);
    (x, y) != (0, 0) && x.max(0) + y.max(0) <= MAX_COARSER_LOG2
}

/// Prefers a coarser level to a finer one of equal distance, because some columns narrower than a
/// pixel are skipped.
fn distance(wanted: Level, other: Level) -> i32 {
    let cost = |step: i32| if step < 0 { -2 * step + 1 } else { 2 * step };
    let (x, y) = log2_difference(wanted, other);
    cost(x) + cost(y)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Cells, Planner, TilePiece, level, nearest_first};
    use crate::tile::{Area, Level, TileGeometry as _, TileKey, power};

    fn area(x0: f64, x1: f64, y0: f64, y1: f64) -> Area {
        Area { x0, x1, y0, y1 }
    }

    fn plan(area: &Area, at: Level, have: &[TileKey]) -> Vec<TilePiece> {
        let have: BTreeSet<TileKey> = have.iter().copied().collect();
        let levels: BTreeSet<Level> = have.iter().map(|key| key.level()).collect();
        let mut pieces = Vec::new();
        Planner::default().plan(
            area,
            at,
            levels.into_iter(),
            |key| have.contains(&key),
            &mut pieces,
        );
        pieces
    }

    fn covered(pieces: &[TilePiece]) -> f64 {
        pieces.iter().map(|p| p.clip.width() * p.clip.height()).sum()
    }

    #[test]
    fn level_has_columns_of_at_least_and_rows_of_at_most_a_pixel() {
        for (slots, bytes) in
            [(1600.0, 800.0), (1601.0, 1599.0), (3.0, 64.0), (1e9, 8e10), (12_345.0, 7e9)]
        {
            let size = [1600.0, 800.0];
            let found = level(&area(0.0, slots, 0.0, bytes), size);
            let (column, row) =
                (power(found.kx) * size[0] / slots, power(found.ky) * size[1] / bytes);
            assert!(
                column >= 1.0 && (column < 2.0 || found.kx == 0),
                "{slots} slots: columns of {column}"
            );
            assert!((row <= 1.0 && row > 0.5) || found.ky == 0, "{bytes} bytes: rows of {row}");
        }
    }

    #[test]
    fn cells_are_those_that_intersect_the_area() {
        let at = Level { kx: 1, ky: 0 };
        let keys: Vec<TileKey> =
            Cells::of(&area(1000.0, 2048.0, 1024.0, 1025.0), at).iter().collect();
        assert_eq!(keys, [at.tile(0, 1), at.tile(1, 1)]);
        assert!(Cells::of(&area(5.0, 5.0, 0.0, 1.0), at).is_empty());
        assert_eq!(Cells::of(&area(-10.0, 1.0, 0.0, 1.0), at).len(), 1, "no cells left of slot 0");
    }

    #[test]
    fn nearest_first_starts_with_the_tile_under_the_point() {
        let at = Level { kx: 0, ky: 0 };
        let mut keys: Vec<TileKey> =
            Cells::of(&area(0.0, 2560.0, 0.0, 3072.0), at).iter().collect();
        nearest_first(&mut keys, [700.0, 1500.0]);
        assert_eq!(keys[0], at.tile(1, 1));
        assert_eq!(*keys.last().unwrap_or(&keys[0]), at.tile(4, 2));
    }

    #[test]
    fn plan_uses_available_tiles_of_the_level() {
        let at = Level { kx: 2, ky: 3 };
        let view = area(100.0, 4000.0, 0.0, 10_000.0);
        let have: Vec<TileKey> = Cells::of(&view, at).iter().collect();
        let pieces = plan(&view, at, &have);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), have);
        assert!((covered(&pieces) - view.width() * view.height()).abs() < 1e-6);
    }

    #[test]
    fn plan_clips_coarse_tiles_to_missing_ones() {
        let (at, coarse) = (Level { kx: 0, ky: 0 }, Level { kx: 3, ky: 1 });
        let view = area(512.0, 2048.0, 0.0, 1024.0);
        let pieces = plan(&view, at, &[coarse.tile(0, 0), at.tile(2, 0)]);
        let keys: Vec<TileKey> = pieces.iter().map(|p| p.key).collect();
        assert_eq!(keys, [coarse.tile(0, 0), at.tile(2, 0), coarse.tile(0, 0)]);
        assert_eq!(pieces[2].clip, area(1536.0, 2048.0, 0.0, 1024.0));
    }

    #[test]
    fn plan_prefers_the_nearest_level_with_full_coverage() {
        let at = Level { kx: 4, ky: 4 };
        let view = at.tile(0, 0).area();
        let near = Level { kx: 5, ky: 4 };
        let far = Level { kx: 9, ky: 9 };
        let finer = Level { kx: 3, ky: 4 };
        // The finer level covers half, and a far level covers all. The far level leaves no hole.
        let pieces = plan(&view, at, &[finer.tile(0, 0), far.tile(0, 0)]);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), [far.tile(0, 0)]);
        let pieces = plan(&view, at, &[finer.tile(0, 0), finer.tile(1, 0), far.tile(0, 0)]);
        assert_eq!(pieces.len(), 2);
        let pieces = plan(&view, at, &[finer.tile(0, 0), finer.tile(1, 0), near.tile(0, 0)]);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), [near.tile(0, 0)]);
        // No level covers the tile completely, so the best partial coverage is used.
        let pieces = plan(&view, at, &[finer.tile(1, 0)]);
        assert!((covered(&pieces) / (view.width() * view.height()) - 0.5).abs() < 1e-9);
        assert!(plan(&view, at, &[]).is_empty());
    }
}
