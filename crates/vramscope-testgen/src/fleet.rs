//! A fleet: the ranks of one job, in stages of a pipeline, with ranks that hold more than the
//! others and ranks that leak. What is planted is known, so that answers about the job can be
//! checked.

use crate::program::Role;
use crate::random::Random;
use std::io;

/// Bytes that a skewed rank holds from its first event on, at [`SKEW_SITE`].
pub const SKEW_BYTES: u64 = 512 << 20;
/// The call site of the bytes of a skewed rank.
pub const SKEW_SITE: &str = "loader.py:112 prefetch";
/// Bytes that a leaking rank keeps in each step, at [`LEAK_SITE`].
pub const LEAK_BYTES: u64 = 8 << 20;
/// The call site of the bytes of a leaking rank.
pub const LEAK_SITE: &str = "metrics.py:44 append";
/// Steps between two iterations of which a snapshot is written.
pub const STEPS_PER_ITERATION: u64 = 100;

/// The size of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetOptions {
    /// Ranks.
    pub ranks: u64,
    /// Stages of the pipeline. Each has neighboring ranks.
    pub stages: u64,
    /// Ranks that hold more than the others of their stage.
    pub skewed: u64,
    /// Ranks that leak.
    pub leaking: u64,
    /// The seed of the choice of ranks.
    pub seed: u64,
}

/// The ranks of one job, and what differs between them.
#[derive(Debug)]
pub struct Fleet {
    options: FleetOptions,
    skewed: Vec<u64>,
    leaking: Vec<u64>,
}

impl Fleet {
    /// A fleet of this size.
    ///
    /// # Errors
    /// `InvalidInput` when there are fewer ranks than stages, or than skewed and leaking ranks.
    pub fn new(options: FleetOptions) -> io::Result<Self> {
        let FleetOptions { ranks, stages, skewed, leaking, seed } = options;
        if stages == 0 || ranks < stages || ranks < skewed.saturating_add(leaking) {
            let message = format!(
                "{ranks} ranks are too few for {stages} stages, {skewed} skewed and {leaking} \
                 leaking ranks, or there is no stage"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut random = Random::new(seed ^ 0xf1ee_7000);
        let mut chosen: Vec<u64> = Vec::new();
        while (chosen.len() as u64) < skewed + leaking {
            let rank = random.below(ranks);
            if !chosen.contains(&rank) {
                chosen.push(rank);
            }
        }
        let mut leaking = chosen.split_off(skewed as usize);
        chosen.sort_unstable();
        leaking.sort_unstable();
        Ok(Self { options, skewed: chosen, leaking })
    }

    /// The stage of a rank.
    pub fn stage(&self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.options.stages) / u128::from(self.options.ranks)) as u64
    }

    /// The ranks that hold more than the others of their stage, ascending.
    pub fn skewed(&self) -> &[u64] {
        &self.skewed
    }

    /// The ranks that leak, ascending.
    pub fn leaking(&self) -> &[u64] {
        &self.leaking
    }

    /// What a rank does in its window. `iterations` is the number of iterations before the window.
    pub(crate) fn role(&self, rank: u64, iterations: u64) -> Role {
        let of = |ranks: &[u64], bytes: u64| if ranks.contains(&rank) { bytes } else { 0 };
        Role {
            stage: (self.options.stages > 1)
                .then(|| (self.stage(rank) as usize, self.options.stages as usize)),
            kept: of(&self.skewed, SKEW_BYTES),
            leak: of(&self.leaking, LEAK_BYTES),
            iterations,
        }
    }
}
