//! Ways from variables to objects. The middle of a long one is left out.

use std::cell::OnceCell;

/// The node that is no node.
pub const NONE: u32 = u32::MAX;

/// The most objects of a way that is whole.
const WHOLE: usize = 64;
/// The objects at the begin and at the end of a way that is cut.
const END: u32 = 20;

/// A way from a variable to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Where it begins.
    pub variable: u32,
    /// The objects, without the ones that were left out.
    pub objects: Vec<u32>,
    /// Objects in front of the cut, and objects left out at the cut.
    pub cut: Option<(usize, u32)>,
}

/// The ways to all nodes, by the node from which each was met first.
pub struct Paths<'walk> {
    parents: &'walk [u32],
    /// Of each node how many are before it, and the last of the first ones.
    far: OnceCell<Vec<(u32, u32)>>,
}

impl<'walk> Paths<'walk> {
    /// `parents` has the node before each, which has a smaller number; [`NONE`] for a variable.
    pub fn new(parents: &'walk [u32]) -> Self {
        Self { parents, far: OnceCell::new() }
    }

    /// The way to an object. It is not cut within an object and its parts.
    pub fn to(&self, object: u32, is_part: impl Fn(u32) -> bool) -> Path {
        let mut objects = Vec::new();
        let mut at = object;
        while self.parents[at as usize] != NONE {
            objects.push(at);
            at = self.parents[at as usize];
            if objects.len() > WHOLE {
                return self.cut(objects, is_part);
            }
        }
        objects.reverse();
        Path { variable: at, objects, cut: None }
    }

    /// Cuts the way that ends with `last`, which lists its last objects backward.
    fn cut(&self, mut last: Vec<u32>, is_part: impl Fn(u32) -> bool) -> Path {
        let far = self.far.get_or_init(|| self.far());
        let length = far[last[0] as usize].0;
        let tail = (END as usize - 1..last.len()).find(|&at| !is_part(last[at]));
        last.truncate(tail.map_or(END as usize, |at| at + 1));
        let mut objects = Vec::new();
        let mut at = far[last[0] as usize].1;
        while self.parents[at as usize] != NONE {
            objects.push(at);
            at = self.parents[at as usize];
        }
        objects.reverse();
        while objects.len() > 1 && objects.last().is_some_and(|&object| is_part(object)) {
            objects.pop();
        }
        let before = objects.len();
        objects.extend(last.iter().rev());
        let left_out = (length as usize).saturating_sub(objects.len());
        Path { variable: at, objects, cut: Some((before, u32::try_from(left_out).unwrap_or(NONE))) }
    }

    fn far(&self) -> Vec<(u32, u32)> {
        let mut far: Vec<(u32, u32)> = Vec::with_capacity(self.parents.len());
        for (node, &parent) in (0_u32..).zip(self.parents) {
            let (before, first) = far.get(parent as usize).map_or((0, node), |&(before, first)| {
                (before + 1, if before < END { node } else { first })
            });
            far.push((before, first));
        }
        far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_way_is_left_out() {
        // A variable, and a chain of objects.
        let parents: Vec<u32> = std::iter::once(NONE).chain(0..1_000_000).collect();
        let paths = Paths::new(&parents);
        let short = paths.to(64, |_| false);
        assert_eq!((short.variable, short.objects.len(), short.cut), (0, 64, None));
        let long = paths.to(1_000_000, |_| false);
        let wanted: Vec<u32> = (1..=20).chain(999_981..=1_000_000).collect();
        assert_eq!((long.variable, &long.objects), (0, &wanted));
        assert_eq!(long.cut, Some((20, 1_000_000 - 40)));
        // Every second one is a part of the one before.
        let long = paths.to(1_000_000, |node| node % 2 == 0);
        let wanted: Vec<u32> = (1..=19).chain(999_981..=1_000_000).collect();
        assert_eq!((long.objects, long.cut), (wanted, Some((19, 1_000_000 - 39))));
        let all_parts = paths.to(1_000_000, |_| true);
        assert_eq!((all_parts.objects.len(), all_parts.cut), (21, Some((1, 1_000_000 - 21))));
    }
}
