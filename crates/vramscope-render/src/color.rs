//! Color words.

/// A hue and a lightness step, one of a few fixed colors, or "no stack".
///
/// Bits 0 to 7 are the hue (256 places on the OKLCH wheel), bits 8 and 9 the lightness step, the
/// rest 0. From 1024 on come the fixed colors: [`Color::category`], [`Color::ramp`] and those of
/// things that are no blocks. The one other value is [`Color::NO_STACK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Color(u32);

// Columns of colors are read as columns of words, by the GPU and across a worker's boundary.
const _: () = assert!(size_of::<Color>() == 4 && align_of::<Color>() == 4);

/// The first fixed color.
const FIXED: u32 = Color::HUES * Color::STEPS;

impl Color {
    /// The gray of blocks whose call stack is not known.
    pub const NO_STACK: Self = Self(0xFFFF);
    /// How many hues there are.
    pub const HUES: u32 = 256;
    /// How many lightness steps there are.
    pub const STEPS: u32 = 4;

    /// How many categories have a color.
    pub const CATEGORIES: u32 = 10;
    /// How many steps the ramp has.
    pub const RAMP: u32 = 16;
    /// One past the last fixed color.
    const LAST: u32 = Self::POOLS.0 + 1;
    /// What a search does not find.
    pub const DIMMED: Self = Self(FIXED + 26);
    /// The ground of a segment, where it is free.
    pub const SEGMENT: Self = Self(FIXED + 27);
    /// A block whose free was asked for and is not complete.
    pub const PENDING: Self = Self(FIXED + 28);
    /// The line of `allocated_bytes`.
    pub const ALLOCATED: Self = Self(FIXED + 29);
    /// The line of `active_bytes`.
    pub const ACTIVE: Self = Self(FIXED + 30);
    /// The line of `reserved_bytes`.
    pub const RESERVED: Self = Self(FIXED + 31);
    /// The line of `requested_bytes` with private pools as a whole.
    pub const POOLS: Self = Self(FIXED + 32);

    /// The color of a category, by its place in the fixed order of categories; beyond the last it
    /// is that of the last.
    pub const fn category(index: u8) -> Self {
        let index = index as u32;
        Self(FIXED + if index < Self::CATEGORIES { index } else { Self::CATEGORIES - 1 })
    }

    /// A step from little (0) to much (15) of something; beyond the last it is the last.
    pub const fn ramp(step: u8) -> Self {
        let step = step as u32;
        Self(FIXED + Self::CATEGORIES + if step < Self::RAMP { step } else { Self::RAMP - 1 })
    }

    /// A place on the wheel; of `step` only the two low bits count, so that any running number will
    /// do.
    pub const fn new(hue: u8, step: u8) -> Self {
        Self(hue as u32 | ((step & 3) as u32) << 8)
    }

    /// What stands in a column.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Reads a word; what is no color is [`Color::NO_STACK`].
    pub const fn from_word(word: u32) -> Self {
        if word < Self::LAST { Self(word) } else { Self::NO_STACK }
    }

    /// The hue, unless this is "no stack".
    pub const fn hue(self) -> Option<u8> {
        if self.0 < Self::HUES * Self::STEPS { Some((self.0 & 0xFF) as u8) } else { None }
    }

    /// The lightness step; 0 for "no stack".
    pub const fn step(self) -> u8 {
        if self.0 < Self::HUES * Self::STEPS { (self.0 >> 8) as u8 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Color;

    #[test]
    fn bits_are_where_the_protocol_says() {
        assert_eq!(Color::new(0xAB, 3).word(), 0x3AB);
        assert_eq!(Color::new(0xAB, 7), Color::new(0xAB, 3));
        assert_eq!(Color::NO_STACK.word(), 0xFFFF);
    }

    #[test]
    fn fixed_colors_follow_the_wheel() {
        assert_eq!((Color::category(0).word(), Color::category(99).word()), (1024, 1033));
        assert_eq!((Color::ramp(0).word(), Color::ramp(99).word()), (1034, 1049));
        assert_eq!(Color::from_word(Color::POOLS.word()), Color::POOLS);
        assert_eq!(Color::POOLS.word(), 1056);
        assert_eq!(Color::PENDING.hue(), None);
    }

    #[test]
    fn unknown_words_are_gray() {
        assert_eq!(Color::from_word(1057), Color::NO_STACK);
        assert_eq!(Color::from_word(u32::MAX).hue(), None);
        assert_eq!(Color::from_word(0x2FF).hue(), Some(255));
        assert_eq!(Color::from_word(0x2FF).step(), 2);
    }
}
