//! Color words: theme-independent colors as `u32`.

/// A hue with a lightness step, a fixed color, or "no stack".
///
/// Bits 0 to 7 are the hue (256 steps on the OKLCH wheel), and bits 8 and 9 the lightness step.
/// Words from 1024 on are fixed colors: [`Color::category`], [`Color::ramp`], [`Color::site`],
/// [`Color::difference`], and those of states and lines. The only other color is
/// [`Color::NO_STACK`]. Bit 16 is a hatch: [`Color::hatched`].
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

    /// This color without its hatch.
    #[must_use]
    pub const fn plain(self) -> Self {
        Self(self.0 & !Self::HATCH)
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
        let is_known = word & !Self::HATCH < Self::END
            || (word | Self::HATCH) == (Self::NO_STACK.0 | Self::HATCH);
        if is_known { Self(word) } else { Self::NO_STACK }
    }

    /// The hue. `None` for fixed colors and "no stack".
    pub const fn hue(self) -> Option<u8> {
        if self.0 < Self::HUES * Self::STEPS { Some((self.0 & 0xFF) as u8) } else { None }
    }

    /// The lightness step. 0 for fixed colors and "no stack".
    pub const fn step(self) -> u8 {
        if self.0 < Self::HUES * Self::STEPS { (self.0 >> 8) as u8 } else { 0 }
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
    fn invalid_words_are_gray() {
        assert_eq!(Color::from_word(1078), Color::NO_STACK);
        assert_eq!(Color::from_word(u32::MAX).hue(), None);
        assert_eq!(Color::from_word(0x2FF).hue(), Some(255));
        assert_eq!(Color::from_word(0x2FF).step(), 2);
    }
}
