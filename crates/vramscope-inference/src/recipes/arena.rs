//! One copy of a run's blocks to which recipes are applied, one list after another.
//!
//! Recipes change blocks in place and add new ones. Before the next list, blocks are copied back
//! from the run, into the same memory. Deaths are not sorted anew: those that no recipe moved are
//! in the run's order.

use super::lives::Lives;
use super::order::{NEW, Order};
use super::replay::{ChangedRun, at_peak};
use super::settle::{settle, time_key};
use super::{Declined, Editable};
use crate::category::Category;
use crate::claims::changes::Recipe;
use crate::evidence::Evidence;
use crate::step_phases::CategoryBytes;
use vramscope_trace::slicing::{Budget, strides};

/// A run to which recipes are applied. Each list of recipes begins with the unchanged run.
#[derive(Debug)]
pub struct Arena<'a> {
    run: &'a Editable,
    /// The changed blocks; `None` before the first recipe.
    lives: Option<Lives>,
    /// The index in the run's blocks of each changed one; [`NEW`] for those that recipes added.
    origin: Vec<u32>,
    order: Order,
    /// The unchanged run at its peak; `None` until a recipe asks.
    unchanged: Option<CategoryBytes>,
}

/// A peak that changes by less with the inputs does not grow with them, in permille.
const UNCHANGED_PERMILLE: u64 = 5;

/// Activations that are a larger part of the peak should grow with the inputs, in percent.
const MIN_ACTIVATIONS_PERCENT: u64 = 10;

impl<'a> Arena<'a> {
    /// An arena without a change.
    pub fn new(run: &'a Editable) -> Self {
        Self { run, lives: None, origin: Vec::new(), order: Order::default(), unchanged: None }
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
            let all = &run.lives.all;
            return Ok(ChangedRun::new(run, all, &run.order, Vec::new(), recipes, run.is_sure));
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
        self.order.change((&run.lives.all, &run.order), &lives.all, &self.origin, budget).await;
        if recipes.iter().any(Recipe::scales_passes) {
            let before = match self.unchanged {
                Some(before) => before,
                None => at_peak(&run.lives.all, &run.order, budget).await,
            };
            self.unchanged = Some(before);
            let after = at_peak(&lives.all, &self.order, budget).await;
            let [was, is] = [before, after].map(|of| of.iter().sum::<u64>());
            let activations = before[Category::Activation as usize];
            let is_unchanged = was.abs_diff(is) <= was / 1000 * UNCHANGED_PERMILLE;
            if is_unchanged && activations > was / 100 * MIN_ACTIVATIONS_PERCENT {
                return Err(Declined::NotOfInputs);
            }
        }
        let is_sure = lives.is_sure(budget).await;
        Ok(ChangedRun::new(run, &lives.all, &self.order, applied, recipes, is_sure))
    }
}
