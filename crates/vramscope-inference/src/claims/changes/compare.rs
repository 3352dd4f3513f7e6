//! Which changes lead from one run to another.

use super::change::{Change, Compared, Features, Group};
use super::recipe::Recipe;
use super::{CHANGES, params_bf16, shard};
use crate::evidence::proof::Enabled;
use crate::evidence::traits::total;

/// The changes that lead from one run of a program to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Recipes that lead from the first run to the second.
    pub recipes: Vec<Recipe>,
    /// A change that sizes cannot tell from the batch, with equal effect: longer sequences.
    pub or: Option<Recipe>,
    /// Changes of the first run that the second has not.
    pub undone: Vec<&'static Change>,
    /// Changes of the first run that the second neither shows nor excludes.
    pub unclear: Vec<&'static Change>,
}

impl Features {
    /// The recipes that lead to a later run. `None` if the models differ, or if no recipe has the
    /// change.
    pub fn changes_to(&self, after: &Self) -> Option<Changes> {
        let has_its_model = params_bf16::is_half(self, after)
            || shard::came(self, after)
            || is_one_model(self, after);
        if !has_its_model {
            return None;
        }
        let (mut changes, mut alone) = (Changes::default(), None);
        let of_optimizer = |change: &Change| change.group == Group::Optimizer;
        for &change in CHANGES {
            match change.compared(self, after) {
                Compared::Same => {}
                Compared::Came(value) => changes.recipes.push(change.with(value)),
                Compared::CameAlone(value) => alone = Some(change.with(value)),
                Compared::Or(value) => changes.or = Some(change.with(value)),
                Compared::Went => changes.undone.push(change),
                Compared::Unnamed => return None,
            }
            if change.must_stay && self.is(change, Enabled::On) && after.of(change).is_none() {
                changes.unclear.push(change);
            }
        }
        if changes.recipes.is_empty() && changes.undone.is_empty() {
            changes.recipes.extend(alone);
        }
        // Of changes of the optimizer the last counts: the others are consequences.
        if let Some(last) = changes.recipes.iter().rfind(|of| of_optimizer(of.change)).cloned() {
            changes.recipes.retain(|of| !of_optimizer(of.change) || *of == last);
            changes.undone.retain(|change| !of_optimizer(change));
        }
        Some(changes)
    }
}

/// Parameters of one program may differ by one percent of their bytes: one is allocated again, or
/// gets another category.
fn is_one_model(a: &Features, b: &Features) -> bool {
    let (before, after) = (total(&a.traits.parameters), total(&b.traits.parameters));
    before > 0 && before.abs_diff(after) * 100 <= before
}
