//! Work that can be stopped.

/// The work was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Steps between two questions whether to go on. A step takes some ten nanoseconds.
const STRIDE: u32 = 1 << 14;

/// Asks now and then whether to go on.
pub(crate) struct Pace<'a> {
    goes_on: &'a dyn Fn() -> bool,
    left: u32,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(goes_on: &'a dyn Fn() -> bool) -> Self {
        Self { goes_on, left: 0 }
    }

    /// Counts one step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Stopped> {
        if self.left == 0 {
            self.left = STRIDE;
            return if (self.goes_on)() { Ok(()) } else { Err(Stopped) };
        }
        self.left -= 1;
        Ok(())
    }
}
