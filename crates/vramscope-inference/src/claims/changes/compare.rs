//! Which changes lead from one run to another.

use super::{CHANGES, Change, Enabled, Features, Group, Recipe, Value};
use std::collections::BTreeMap;

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

/// How a second run differs from the first, for one change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Compared {
    /// Nothing of this change.
    Same,
    /// The change.
    Came(Value),
    /// As well as another change.
    Or(Value),
    /// The second run is without it.
    Went,
    /// Something that has no name.
    Unnamed,
}

/// A change that was off came, and one that was on went.
pub(super) fn came_or_went(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match (a.state(change), b.state(change)) {
        (Some(Enabled::Off), Some(Enabled::On)) => Compared::Came(Value::None),
        (Some(Enabled::On), Some(Enabled::Off)) => Compared::Went,
        _ => Compared::Same,
    }
}

/// As [`came_or_went`], where only what comes tells.
pub(super) fn came(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match came_or_went(change, a, b) {
        Compared::Went => Compared::Same,
        compared => compared,
    }
}

impl Change {
    pub(super) fn compared(&'static self, a: &Features, b: &Features) -> Compared {
        (self.compare)(self, a, b)
    }
}

impl Features {
    /// The recipes that lead to a later run. `None` if the models differ, or if no recipe has the
    /// change.
    pub fn changes_to(&self, after: &Self) -> Option<Changes> {
        let has_its_model = super::params_bf16::is_half(self, after)
            || super::shard::came(self, after)
            || is_one_model(self, after);
        if !has_its_model {
            return None;
        }
        let mut changes = Changes::default();
        let of_optimizer = |change: &Change| change.group == Group::Optimizer;
        for &change in CHANGES {
            match change.compared(self, after) {
                Compared::Same => {}
                Compared::Came(value) => changes.recipes.push(change.with(value)),
                Compared::Or(value) => changes.or = Some(change.with(value)),
                Compared::Went => changes.undone.push(change),
                Compared::Unnamed => return None,
            }
            if change.must_stay && self.is(change, Enabled::On) && after.of(change).is_none() {
                changes.unclear.push(change);
            }
        }
        // Of changes of the optimizer the last counts: the others are consequences.
        if let Some(last) = changes.recipes.iter().rfind(|of| of_optimizer(of.change)).cloned() {
            changes.recipes.retain(|of| !of_optimizer(of.change) || *of == last);
            changes.undone.retain(|change| !of_optimizer(change));
        }
        Some(changes)
    }
}

/// Bytes of sizes that occur several times each.
pub(super) fn total(sizes: &BTreeMap<u64, u32>) -> u64 {
    sizes.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum()
}

/// Parameters of one program may differ by one percent of their bytes: one is allocated again, or
/// gets another category.
fn is_one_model(a: &Features, b: &Features) -> bool {
    let (before, after) = (total(&a.traits.parameters), total(&b.traits.parameters));
    before > 0 && before.abs_diff(after) * 100 <= before
}
