//! The births and deaths of blocks in the order of time.

use super::lives::Life;
use super::settle::{settle, time_key};
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};

/// The births and deaths of blocks in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The number of blocks that are born. Their births are in the order of the blocks.
    pub(super) births: usize,
    /// The blocks that die, by death. At equal times they come in the order of their births.
    pub(super) frees: Vec<u32>,
}

/// The origin of a block that recipes added.
pub(super) const NEW: u32 = u32::MAX;

impl Order {
    /// The order of blocks.
    pub(crate) async fn new(lives: &[Life], budget: &mut Budget) -> Self {
        let mut order = Self::default();
        for part in strides(lives.len()) {
            budget.charge(part.len() as u64).await;
            for at in part {
                order.births += usize::from(lives[at].is_real());
                if lives[at].dies() {
                    order.frees.push(at as u32);
                }
            }
        }
        order.settle(lives, budget).await;
        order
    }

    /// The order of changed blocks. It begins with the order of those `before`. `origin` has the
    /// index there of each changed block, or [`NEW`].
    pub(super) async fn change(
        &mut self,
        before: (&[Life], &Self),
        lives: &[Life],
        origin: &[u32],
        budget: &mut Budget,
    ) {
        let mut places = filled(NEW, before.0.len(), budget).await;
        let mut others = Vec::new();
        self.births = 0;
        for part in strides(lives.len()) {
            budget.charge(part.len() as u64).await;
            for at in part {
                self.births += usize::from(lives[at].is_real());
                match before.0.get(origin[at] as usize) {
                    _ if !lives[at].dies() => {}
                    Some(life) if life.dies() => places[origin[at] as usize] = at as u32,
                    _ => others.push(at as u32),
                }
            }
        }
        self.frees.clear();
        for frees in before.1.frees.chunks(STRIDE) {
            budget.charge(2 * frees.len() as u64).await;
            let places = frees.iter().map(|&at| places[at as usize]);
            self.frees.extend(places.filter(|&at| at != NEW));
        }
        self.frees.append(&mut others);
        self.settle(lives, budget).await;
    }

    async fn settle(&mut self, lives: &[Life], budget: &mut Budget) {
        let death = |&at: &u32| (time_key(lives[at as usize].end), at);
        settle(&mut self.frees, None, death, budget).await;
    }
}
