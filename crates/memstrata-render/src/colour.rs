//! Colour words.

/// A hue and a lightness step, or "no stack".
///
/// Bits 0 to 7 are the hue (256 places on the OKLCH wheel), bits 8 and 9 the lightness step, the rest 0. The one other
/// value is [`Colour::NO_STACK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Colour(u32);

// Columns of colours are read as columns of words, by the GPU and across a worker's boundary.
const _: () = assert!(size_of::<Colour>() == 4 && align_of::<Colour>() == 4);

impl Colour {
    /// The grey of blocks whose call stack is not known.
    pub const NO_STACK: Self = Self(0xFFFF);
    /// How many hues there are.
    pub const HUES: u32 = 256;
    /// How many lightness steps there are.
    pub const STEPS: u32 = 4;

    /// A place on the wheel; of `step` only the two low bits count, so that any running number will do.
    pub const fn new(hue: u8, step: u8) -> Self {
        Self(hue as u32 | ((step & 3) as u32) << 8)
    }

    /// What stands in a column.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Reads a word; what is no place on the wheel is [`Colour::NO_STACK`].
    pub const fn from_word(word: u32) -> Self {
        if word < Self::HUES * Self::STEPS { Self(word) } else { Self::NO_STACK }
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
    use super::Colour;

    #[test]
    fn bits_are_where_the_protocol_says() {
        assert_eq!(Colour::new(0xAB, 3).word(), 0x3AB);
        assert_eq!(Colour::new(0xAB, 7), Colour::new(0xAB, 3));
        assert_eq!(Colour::NO_STACK.word(), 0xFFFF);
    }

    #[test]
    fn unknown_words_are_grey() {
        assert_eq!(Colour::from_word(1024), Colour::NO_STACK);
        assert_eq!(Colour::from_word(u32::MAX).hue(), None);
        assert_eq!(Colour::from_word(0x2FF).hue(), Some(255));
        assert_eq!(Colour::from_word(0x2FF).step(), 2);
    }
}
