//! Which tiles a view wants, and what stands in for those that are not there yet.

use std::ops::Range;

use crate::tile::{Area, Level, TileKey, power};

/// How many tiles of a finer level may stand in for one; beyond that they are too small to be worth
/// the search.
const MOST_FINER: u64 = 16;
/// How many times coarser (log2) a stand-in may be, in both directions together: a screen across.
const MOST_COARSER: i32 = 20;
/// Columns and rows stay exact in `f64` up to here.
const LAST_POWER: u8 = 48;

/// The level for a view of this many device pixels: the finest columns of a pixel or more (of
/// narrower ones some would be skipped), and the coarsest rows of a pixel or less (so that tiles
/// are no taller than they must be).
pub fn level(view: &Area, [width, height]: [f64; 2]) -> Level {
    let (slots, bytes) = (view.width() / width, view.height() / height);
    let kx = (0..LAST_POWER).find(|k| power(*k) >= slots).unwrap_or(LAST_POWER);
    let ky = (0..LAST_POWER).take_while(|k| power(*k) <= bytes).last().unwrap_or(0);
    Level { kx, ky }
}

/// The tiles of a level that an area touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    level: Level,
    ix: Range<u32>,
    iy: Range<u32>,
}

impl Cells {
    /// The tiles of `level` that `area` touches; none when it is empty.
    pub fn of(area: &Area, level: Level) -> Self {
        if area.is_empty() {
            return Self { level, ix: 0..0, iy: 0..0 };
        }
        let [w, h] = level.tile_size();
        let range =
            |lo: f64, hi: f64, size: f64| (lo / size).floor() as u32..(hi / size).ceil() as u32;
        Self { level, ix: range(area.x0, area.x1, w), iy: range(area.y0, area.y1, h) }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.ix.len() as u64 * self.iy.len() as u64
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = TileKey> + '_ {
        self.iy.clone().flat_map(move |iy| self.ix.clone().map(move |ix| self.level.tile(ix, iy)))
    }
}

/// Puts the tiles nearest to a place (slot, bytes) first. All are of one level.
pub fn nearest_first(keys: &mut [TileKey], [slot, bytes]: [f64; 2]) {
    let distance = |key: &TileKey| {
        let area = key.area();
        // In tiles: on the screen they are about as wide as high.
        let dx = (f64::midpoint(area.x0, area.x1) - slot) / area.width();
        let dy = (f64::midpoint(area.y0, area.y1) - bytes) / area.height();
        dx * dx + dy * dy
    };
    keys.sort_unstable_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b)));
}

/// A tile, or a part of one, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Which tile.
    pub key: TileKey,
    /// The part of it.
    pub clip: Area,
}

/// Finds what to draw; keeps its scratch space between frames.
#[derive(Debug, Default)]
pub struct Planner {
    levels: Vec<Level>,
    trial: Vec<Piece>,
    best: Vec<Piece>,
}

impl Planner {
    /// Covers `area` (in view, and where there are data) with the tiles of `level`, and with others
    /// where those are missing: the nearest level whose tiles cover the whole of the missing one,
    /// else the one that covers most of it. Pieces do not overlap. `levels` are those of which
    /// there are drawable tiles.
    pub fn plan(
        &mut self,
        area: &Area,
        level: Level,
        levels: impl Iterator<Item = Level>,
        drawable: impl Fn(TileKey) -> bool,
        pieces: &mut Vec<Piece>,
    ) {
        pieces.clear();
        self.levels.clear();
        let mut levels = Some(levels);
        for key in Cells::of(area, level).iter() {
            let cell = key.area().and(area);
            if drawable(key) {
                pieces.push(Piece { key, clip: cell });
                continue;
            }
            if let Some(levels) = levels.take() {
                self.levels.extend(levels.filter(|other| stand_in(level, *other)));
                self.levels.sort_unstable_by_key(|other| (distance(level, *other), *other));
            }
            self.best.clear();
            let mut best_area = 0.0;
            for other in &self.levels {
                let cells = Cells::of(&cell, *other);
                if cells.len() > MOST_FINER {
                    continue;
                }
                self.trial.clear();
                self.trial.extend(
                    cells
                        .iter()
                        .filter(|k| drawable(*k))
                        .map(|key| Piece { key, clip: key.area().and(&cell) }),
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

fn steps(wanted: Level, other: Level) -> (i32, i32) {
    (i32::from(other.kx) - i32::from(wanted.kx), i32::from(other.ky) - i32::from(wanted.ky))
}

fn stand_in(wanted: Level, other: Level) -> bool {
    let (x, y) = steps(wanted, other);
    (x, y) != (0, 0) && x.max(0) + y.max(0) <= MOST_COARSER
}

/// Coarser before as much finer: of columns narrower than a pixel some are skipped.
fn distance(wanted: Level, other: Level) -> i32 {
    let cost = |step: i32| if step < 0 { -2 * step + 1 } else { 2 * step };
    let (x, y) = steps(wanted, other);
    cost(x) + cost(y)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Cells, Piece, Planner, level, nearest_first};
    use crate::tile::{Area, Level, TileKey, power};

    fn area(x0: f64, x1: f64, y0: f64, y1: f64) -> Area {
        Area { x0, x1, y0, y1 }
    }

    fn plan(seen: &Area, at: Level, have: &[TileKey]) -> Vec<Piece> {
        let have: BTreeSet<TileKey> = have.iter().copied().collect();
        let levels: BTreeSet<Level> = have.iter().map(|key| key.level()).collect();
        let mut pieces = Vec::new();
        Planner::default().plan(
            seen,
            at,
            levels.into_iter(),
            |key| have.contains(&key),
            &mut pieces,
        );
        pieces
    }

    fn covered(pieces: &[Piece]) -> f64 {
        pieces.iter().map(|p| p.clip.width() * p.clip.height()).sum()
    }

    #[test]
    fn columns_are_a_pixel_or_more_and_rows_a_pixel_or_less() {
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
    fn cells_are_those_that_the_area_touches() {
        let at = Level { kx: 1, ky: 0 };
        let keys: Vec<TileKey> =
            Cells::of(&area(1000.0, 2048.0, 1024.0, 1025.0), at).iter().collect();
        assert_eq!(keys, [at.tile(0, 1), at.tile(1, 1)]);
        assert!(Cells::of(&area(5.0, 5.0, 0.0, 1.0), at).is_empty());
        assert_eq!(
            Cells::of(&area(-10.0, 1.0, 0.0, 1.0), at).len(),
            1,
            "nothing is left of slot 0"
        );
    }

    #[test]
    fn the_tile_under_the_pointer_comes_first() {
        let at = Level { kx: 0, ky: 0 };
        let mut keys: Vec<TileKey> =
            Cells::of(&area(0.0, 2560.0, 0.0, 3072.0), at).iter().collect();
        nearest_first(&mut keys, [700.0, 1500.0]);
        assert_eq!(keys[0], at.tile(1, 1));
        assert_eq!(*keys.last().unwrap_or(&keys[0]), at.tile(4, 2));
    }

    #[test]
    fn exact_tiles_are_drawn_whole() {
        let at = Level { kx: 2, ky: 3 };
        let seen = area(100.0, 4000.0, 0.0, 10_000.0);
        let have: Vec<TileKey> = Cells::of(&seen, at).iter().collect();
        let pieces = plan(&seen, at, &have);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), have);
        assert!((covered(&pieces) - seen.width() * seen.height()).abs() < 1e-6);
    }

    #[test]
    fn a_coarse_tile_is_cut_to_each_missing_one() {
        let (at, coarse) = (Level { kx: 0, ky: 0 }, Level { kx: 3, ky: 1 });
        let seen = area(512.0, 2048.0, 0.0, 1024.0);
        let pieces = plan(&seen, at, &[coarse.tile(0, 0), at.tile(2, 0)]);
        let keys: Vec<TileKey> = pieces.iter().map(|p| p.key).collect();
        assert_eq!(keys, [coarse.tile(0, 0), at.tile(2, 0), coarse.tile(0, 0)]);
        assert_eq!(pieces[2].clip, area(1536.0, 2048.0, 0.0, 1024.0));
    }

    #[test]
    fn the_nearest_level_that_covers_everything_wins() {
        let at = Level { kx: 4, ky: 4 };
        let seen = at.tile(0, 0).area();
        let near = Level { kx: 5, ky: 4 };
        let far = Level { kx: 9, ky: 9 };
        let finer = Level { kx: 3, ky: 4 };
        // Half of the finer level, all of a far one: the far one, since it leaves no hole.
        let pieces = plan(&seen, at, &[finer.tile(0, 0), far.tile(0, 0)]);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), [far.tile(0, 0)]);
        let pieces = plan(&seen, at, &[finer.tile(0, 0), finer.tile(1, 0), far.tile(0, 0)]);
        assert_eq!(pieces.len(), 2);
        let pieces = plan(&seen, at, &[finer.tile(0, 0), finer.tile(1, 0), near.tile(0, 0)]);
        assert_eq!(pieces.iter().map(|p| p.key).collect::<Vec<_>>(), [near.tile(0, 0)]);
        // Nothing covers it whole: what there is.
        let pieces = plan(&seen, at, &[finer.tile(1, 0)]);
        assert!((covered(&pieces) / (seen.width() * seen.height()) - 0.5).abs() < 1e-9);
        assert!(plan(&seen, at, &[]).is_empty());
    }
}
