//! One copy of a run's blocks to which recipes are applied, one list after another.
//!
//! Recipes change blocks in place and add new ones. Before the next list, blocks are copied back
//! from the run, into the same memory. Deaths are not sorted anew: those that no recipe moved are
//! in the run's order.

use super::lives::{Life, Lives};
use super::order::{settle, time_key};
use super::replay::ChangedRun;
use super::{Declined, Editable};
use crate::claims::changes::Recipe;
use crate::evidence::Evidence;
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};

/// A run to which recipes are applied. Each list of recipes begins with the unchanged run.
#[derive(Debug)]
pub struct Arena<'a> {
    run: &'a Editable,
    /// The changed blocks; `None` before the first recipe.
    lives: Option<Lives>,
    /// The index in the run's blocks of each changed one; [`NEW`] for those that recipes added.
    origin: Vec<u32>,
    order: Order,
}

/// The births and deaths of blocks in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The number of blocks that are born. Their births are in the order of the blocks.
    pub(super) births: usize,
    /// The blocks that die, by death. At equal times they come in the order of their births.
    pub(super) frees: Vec<u32>,
}

const NEW: u32 = u32::MAX;

impl<'a> Arena<'a> {
    /// An arena without a change.
    pub fn new(run: &'a Editable) -> Self {
        Self { run, lives: None, origin: Vec::new(), order: Order::default() }
    }

    /// The run with recipes, one after the other.
    ///
    /// # Errors
    /// A recipe lacks a fact.
    pub async fn apply(
        &mut self,
        cx: Evidence<'_>,
        recipes: &[Recipe],
        budget: &mut Budget,
    ) -> Result<ChangedRun<'_>, Declined> {
        let run = self.run;
        if recipes.is_empty() {
            return Ok(ChangedRun::new(run, &run.lives.all, &run.order, Vec::new(), recipes));
        }
        let lives = match &mut self.lives {
            Some(lives) => lives,
            none => none.insert(run.lives.without_blocks()),
        };
        lives.all.clear();
        self.origin.clear();
        for part in strides(run.lives.all.len()) {
            budget.charge(2 * part.len() as u64).await;
            self.origin.extend(part.start as u32..part.end as u32);
            lives.all.extend_from_slice(&run.lives.all[part]);
        }
        let mut applied = Vec::with_capacity(recipes.len());
        for recipe in recipes {
            budget.charge(8 * lives.all.len() as u64).await;
            applied.push(recipe.apply(lives, &run.facts, cx)?);
            self.origin.resize(lives.all.len(), NEW);
            let origin = Some(&mut self.origin[..]);
            settle(&mut lives.all, origin, |life| time_key(life.begin), budget).await;
        }
        self.order.change(run, &lives.all, &self.origin, budget).await;
        Ok(ChangedRun::new(run, &lives.all, &self.order, applied, recipes))
    }
}

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

    /// The order of the changed blocks of a run. It begins with the order of the run.
    async fn change(
        &mut self,
        run: &Editable,
        lives: &[Life],
        origin: &[u32],
        budget: &mut Budget,
    ) {
        let mut places = filled(NEW, run.lives.all.len(), budget).await;
        let mut others = Vec::new();
        self.births = 0;
        for part in strides(lives.len()) {
            budget.charge(part.len() as u64).await;
            for at in part {
                self.births += usize::from(lives[at].is_real());
                match run.lives.all.get(origin[at] as usize) {
                    _ if !lives[at].dies() => {}
                    Some(life) if life.dies() => places[origin[at] as usize] = at as u32,
                    _ => others.push(at as u32),
                }
            }
        }
        self.frees.clear();
        for frees in run.order.frees.chunks(STRIDE) {
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
