//! Color words: theme-independent colors as `u32`.

/// A hue with a lightness step, a fixed color, or "no stack".
///
/// Bits 0 to 7 are the hue (256 steps on the OKLCH wheel), and bits 8 and 9 the lightness step.
/// Words from 1024 on are fixed colors: [`Color::category`], [`Color::ramp`], [`Color::site`],
/// [`Color::difference`], and those of states and lines. The only other color is
/// [`Color::NO_STACK`]. The bits above say how it is drawn: bit 16 a hatch ([`Color::hatched`]),
/// bit 17 an edge ([`Color::edged`]), bits 18 and 19 a shade ([`Color::shaded`]), bits 24 to 31 the
/// share of hits of a search ([`Color::of_hits`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Color(u32);

// The GPU and the worker protocol read arrays of colors as arrays of `u32`.
const _: () = assert!(size_of::<Color>() == 4 && align_of::<Color>() == 4);

/// Word of the first fixed color.
const FIRST_FIXED: u32 = Color::HUES * Color::STEPS;

impl Color {
    /// Gray, for blocks without a recorded call stack.
    pub const NO_STACK: Self = Self(0xFFFF);
    /// Number of hues.
    pub const HUES: u32 = 256;
    /// Number of lightness steps.
    pub const STEPS: u32 = 4;

    /// Number of category colors.
    pub const CATEGORIES: u32 = 11;
    /// Number of steps of the ramp.
    pub const RAMP: u32 = 16;
    /// Number of colors for the largest call sites.
    pub const SITES: u32 = 10;
    /// Word of the first color of a state or line.
    const STATES: u32 = FIRST_FIXED + Self::CATEGORIES + Self::RAMP + Self::SITES;
    /// One past the word of the last fixed color.
    const END: u32 = Self::DIFFERENCES + 2 * Self::LEVELS + 1;
    /// Number of steps away from "equal" in a comparison, for less and for more.
    pub const LEVELS: u32 = 4;
    /// Word of the first color of a comparison.
    const DIFFERENCES: u32 = Self::CASING.0 + 1;
    /// Bit of hatched colors.
    const HATCH: u32 = 1 << 16;
    /// Bit of colors with an edge.
    const EDGE: u32 = 1 << 17;
    /// Lowest bit of a shade.
    const SHADE: u32 = 18;
    /// Number of shades.
    pub const SHADES: u32 = 3;
    /// Lowest bit of a share.
    const SHARE: u32 = 24;
    /// Steps of a share.
    const SHARES: u64 = 256;
    /// Bits of a color without what is added to it.
    const PLAIN: u32 = Self::HATCH - 1;
    /// Blocks that do not match the search.
    pub const DIMMED: Self = Self(Self::STATES);
    /// The background of a segment, visible where it is free.
    pub const SEGMENT: Self = Self(Self::STATES + 1);
    /// Blocks of call sites that are not among the largest.
    pub const OTHER: Self = Self(Self::STATES + 2);
    /// The line of `allocated_bytes`. This and all colors up to the casing are those of lines.
    pub const ALLOCATED: Self = Self(Self::STATES + 3);
    /// The line of `active_bytes`.
    pub const ACTIVE: Self = Self(Self::STATES + 4);
    /// The line of `reserved_bytes`.
    pub const RESERVED: Self = Self(Self::STATES + 5);
    /// The line of `requested_bytes` with private pools counted as a whole.
    pub const POOLS: Self = Self(Self::STATES + 6);
    /// The edge around a line, which separates it from the blocks below.
    pub const CASING: Self = Self(Self::STATES + 7);

    /// The color of a category, by its index in the fixed order of categories. Larger indexes give
    /// the last category.
    pub const fn category(index: u8) -> Self {
        let index = index as u32;
        Self(FIRST_FIXED + if index < Self::CATEGORIES { index } else { Self::CATEGORIES - 1 })
    }

    /// A step of the ramp for a quantity, from low (0) to high (15). Larger steps give the last.
    pub const fn ramp(step: u8) -> Self {
        let step = step as u32;
        Self(FIRST_FIXED + Self::CATEGORIES + if step < Self::RAMP { step } else { Self::RAMP - 1 })
    }

    /// A color of one of the largest call sites. Larger indexes give the last.
    pub const fn site(index: u8) -> Self {
        let index = if (index as u32) < Self::SITES { index as u32 } else { Self::SITES - 1 };
        Self(FIRST_FIXED + Self::CATEGORIES + Self::RAMP + index)
    }

    /// A step of a comparison, from much less (-4, blue) over equal (0, gray) to much more (4,
    /// red). Other levels give the nearest.
    pub const fn difference(level: i8) -> Self {
        let most = Self::LEVELS as i8;
        let level = if level > most {
            most
        } else if level < -most {
            -most
        } else {
            level
        };
        Self(Self::DIFFERENCES + (level + most) as u32)
    }

    /// This color with stripes of the background: free memory, and blocks whose free was requested
    /// and is not complete.
    #[must_use]
    pub const fn hatched(self) -> Self {
        Self(self.0 | Self::HATCH)
    }

    /// True for a hatched color.
    pub const fn is_hatched(self) -> bool {
        self.0 & Self::HATCH != 0
    }

    /// This color with a line of the background along its lower edge: another group is below.
    #[must_use]
    pub const fn edged(self) -> Self {
        Self(self.0 | Self::EDGE)
    }

    /// True for a color with an edge.
    pub const fn is_edged(self) -> bool {
        self.0 & Self::EDGE != 0
    }

    /// One of [`Color::SHADES`] shades of this color, by any running number. It parts neighbors of
    /// one category.
    #[must_use]
    pub const fn shaded(self, number: u32) -> Self {
        Self(self.0 & !(3 << Self::SHADE) | (number % Self::SHADES) << Self::SHADE)
    }

    /// The shade: 0 for the color itself.
    pub const fn shade(self) -> u32 {
        self.0 >> Self::SHADE & 3
    }

    /// The color of a strip of `bytes` bytes, of which `hits` bytes match the search. If all match,
    /// it is this color; if none match, [`Color::DIMMED`]; else this color, dimmed in part. A share
    /// above 0 stays above 0.
    #[must_use]
    pub const fn of_hits(self, hits: u64, bytes: u64) -> Self {
        if hits >= bytes {
            return self;
        }
        if hits == 0 {
            return Self::DIMMED;
        }
        let share = (hits as u128 * Self::SHARES as u128 / bytes as u128) as u32;
        Self(self.0 | (if share == 0 { 1 } else { share }) << Self::SHARE)
    }

    /// The share of hits, from 0 to 1. 1 for a color without a share.
    pub const fn share(self) -> f64 {
        match self.0 >> Self::SHARE {
            _ if self.plain().0 == Self::DIMMED.0 => 0.0,
            0 => 1.0,
            share => share as f64 / Self::SHARES as f64,
        }
    }

    /// This color without hatch, edge, shade and share.
    #[must_use]
    pub const fn plain(self) -> Self {
        Self(self.0 & Self::PLAIN)
    }

    /// True for the colors of lines and of their casing. Strips of these colors are drawn with a
    /// fixed width in pixels.
    pub const fn is_line(self) -> bool {
        self.0 >= Self::ALLOCATED.0 && self.0 <= Self::CASING.0
    }

    /// A hue and a lightness step. Only the two low bits of `step` are used, so any running number
    /// is valid.
    pub const fn new(hue: u8, step: u8) -> Self {
        Self(hue as u32 | ((step & 3) as u32) << 8)
    }

    /// The color as stored in [`Strips::colors`](crate::Strips::colors).
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Reads a word. Invalid words give [`Color::NO_STACK`].
    pub const fn from_word(word: u32) -> Self {
        let plain = word & Self::PLAIN;
        let is_known = plain < Self::END || plain == Self::NO_STACK.0;
        if is_known { Self(word) } else { Self::NO_STACK }
    }

    /// The hue. `None` for fixed colors and "no stack".
    pub const fn hue(self) -> Option<u8> {
        let plain = self.plain().0;
        if plain < Self::HUES * Self::STEPS { Some((plain & 0xFF) as u8) } else { None }
    }

    /// The lightness step. 0 for fixed colors and "no stack".
    pub const fn step(self) -> u8 {
        let plain = self.plain().0;
        if plain < Self::HUES * Self::STEPS { (plain >> 8) as u8 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Color;

    #[test]
    fn words_have_the_protocol_layout() {
        assert_eq!(Color::new(0xAB, 3).word(), 0x3AB);
        assert_eq!(Color::new(0xAB, 7), Color::new(0xAB, 3));
        assert_eq!(Color::NO_STACK.word(), 0xFFFF);
    }

    #[test]
    fn fixed_colors_follow_the_wheel() {
        assert_eq!((Color::category(0).word(), Color::category(99).word()), (1024, 1034));
        assert_eq!((Color::ramp(0).word(), Color::ramp(99).word()), (1035, 1050));
        assert_eq!((Color::site(0).word(), Color::site(99).word()), (1051, 1060));
        assert_eq!(Color::from_word(Color::POOLS.word()), Color::POOLS);
        assert_eq!((Color::ALLOCATED.word(), Color::CASING.word()), (1064, 1068));
        let differences = [-9, -4, 0, 4, 9].map(|level| Color::difference(level).word());
        assert_eq!(differences, [1069, 1069, 1073, 1077, 1077]);
        assert_eq!(Color::from_word(1077), Color::difference(4));
        assert_eq!(Color::SEGMENT.hue(), None);
    }

    #[test]
    fn a_hatch_keeps_the_color() {
        for color in [Color::new(7, 2), Color::category(3), Color::NO_STACK] {
            let hatched = color.hatched();
            assert!(hatched.is_hatched() && !color.is_hatched() && !hatched.is_line());
            assert_eq!((hatched.plain(), Color::from_word(hatched.word())), (color, hatched));
        }
        let lines = [Color::ALLOCATED, Color::RESERVED, Color::POOLS, Color::CASING];
        assert!(lines.iter().all(|color| color.is_line()));
        assert!(![Color::OTHER, Color::difference(0), Color::site(9)].iter().any(|c| c.is_line()));
    }

    #[test]
    fn a_share_is_between_dimmed_and_the_color() {
        let color = Color::category(3);
        assert_eq!(color.of_hits(7, 7), color);
        assert_eq!(color.of_hits(0, 7), Color::DIMMED);
        assert_eq!((color.share(), Color::DIMMED.share()), (1.0, 0.0));
        for (hits, bytes, share) in
            [(1, 2, 0.5), (1, u64::MAX, 1.0 / 256.0), (u64::MAX - 1, u64::MAX, 255.0 / 256.0)]
        {
            let part = color.of_hits(hits, bytes);
            assert_eq!(part.share(), share);
            assert_eq!((part.plain(), Color::from_word(part.word())), (color, part));
        }
    }

    #[test]
    fn edges_and_shades_keep_the_color() {
        let color = Color::category(3).shaded(5).edged().of_hits(1, 2);
        assert_eq!((color.shade(), color.is_edged(), color.share()), (2, true, 0.5));
        assert_eq!((color.plain(), Color::from_word(color.word())), (Color::category(3), color));
        assert_eq!(color.shaded(3).shade(), 0);
        assert!(!Color::category(3).is_edged());
    }

    #[test]
    fn invalid_words_are_gray() {
        assert_eq!(Color::from_word(1078), Color::NO_STACK);
        assert_eq!(Color::from_word(0xFF02_0436), Color::NO_STACK);
        assert_eq!(Color::from_word(u32::MAX).hue(), None);
        assert_eq!(Color::from_word(0x2FF).hue(), Some(255));
        assert_eq!(Color::from_word(0x2FF).step(), 2);
    }
}
