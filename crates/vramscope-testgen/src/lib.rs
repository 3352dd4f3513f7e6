//! Synthetic snapshots: files that PyTorch could have written, of any size, the same for the same
//! seed on every machine.
//!
//! [`Generator`] simulates the training of a sharded model and writes each rank's snapshot.
//! [`warm_up()`] writes the small snapshot that the page's worker reads before the first file.
//! [`allocator`] is the caching allocator behind both, and the oracle of the replay in
//! vramscope-trace. This crate shares no code with the crates that it tests, and none of them
//! depends on it outside of tests.
//!
//! ```
//! use vramscope_testgen::{Generator, Options};
//!
//! let generator = Generator::new(&Options { events: 2000, live: 200, ..Options::default() })?;
//! let mut file = Vec::new();
//! let written = generator.write(0, &mut file)?;
//! assert_eq!(written.bytes, file.len() as u64);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod allocator;
pub mod fleet;
mod pickler;
mod program;
mod random;
mod sites;
mod snapshot;
mod stacks;
mod warm_up;

pub use fleet::{Fleet, FleetOptions};
pub use snapshot::Written;
pub use warm_up::warm_up;

use program::{Plan, Role};
use random::Random;
use stacks::Stacks;
use std::io::{self, Write};

/// Size and shape of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Events of each rank's trace; the last operation may add a few.
    pub events: u64,
    /// Blocks that are live at the end, roughly: from 100 to a fourth of the events.
    pub live: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Frames of a call stack, on average.
    pub frames: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { events: 40_000, live: 10_000, seed: 1, frames: 32 }
    }
}

/// A simulated run of several ranks.
pub struct Generator {
    plan: Plan,
    stacks: Stacks,
}

impl Generator {
    /// A run with these options.
    ///
    /// # Errors
    /// `InvalidInput` when `live` is out of range.
    pub fn new(options: &Options) -> io::Result<Self> {
        let Options { events, live, seed, frames } = *options;
        let invalid = |message| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if live < 100 {
            return invalid(format!("{live} live blocks are too few: one layer needs 100"));
        }
        if events / 4 < live {
            return invalid(format!(
                "{events} events are too few for {live} live blocks: use at least {}",
                live.saturating_mul(4)
            ));
        }
        let stacks = Stacks::new(usize::from(frames), &mut Random::new(seed));
        Ok(Self { plan: Plan::new(events, live, seed), stacks })
    }

    /// Writes one rank's snapshot as a pickle.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, rank: u64, mut out: impl Write) -> io::Result<Written> {
        self.write_role(rank, &Role::default(), &mut out)
    }

    /// Writes the snapshot of a rank of a fleet. `iterations` is the number of iterations before
    /// the recorded window.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_of(
        &self,
        fleet: &Fleet,
        rank: u64,
        iterations: u64,
        mut out: impl Write,
    ) -> io::Result<Written> {
        self.write_role(rank, &fleet.role(rank, iterations), &mut out)
    }

    // Not generic, so that the code is compiled with this crate's optimization.
    fn write_role(&self, rank: u64, role: &Role, out: &mut dyn Write) -> io::Result<Written> {
        snapshot::write(&self.plan, &self.stacks, (rank, role), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_out_of_range_is_refused() {
        let error = |events, live| {
            let options = Options { events, live, ..Options::default() };
            Generator::new(&options).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(error(4000, 99).contains("99 live blocks are too few"));
        assert!(error(399, 100).contains("use at least 400"));
        assert_eq!(error(400, 100), "");
    }
}
