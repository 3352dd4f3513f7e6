//! Chains that differ by the indices of items alone: `losses[0]` and `losses[1]`.

use crate::sidecar::holders::{By, Holders, Link};
use rustc_hash::FxHasher;
use std::hash::{Hash as _, Hasher as _};

/// The index of an item.
pub(super) fn index(link: &Link) -> Option<u64> {
    link.name.as_deref().filter(|_| link.by == By::Item)?.parse().ok()
}

/// A number that chains have in common which differ by the indices of items alone.
pub(super) fn pattern(holders: &Holders, link: u32) -> u64 {
    let mut hasher = FxHasher::default();
    for &link in &holders.chain(link) {
        let link = holders.link(link);
        link.by.hash(&mut hasher);
        if index(link).is_none() {
            (&link.name, &link.function, &link.file, link.line).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The indices of the items of alike chains that differ, by position.
pub(super) fn ranges(holders: &Holders, links: &[u32]) -> Vec<Option<(u64, u64)>> {
    let mut all: Vec<Option<(u64, u64)>> = Vec::new();
    for &link in links {
        let chain = holders.chain(link);
        all.resize(all.len().max(chain.len()), None);
        for (range, &link) in all.iter_mut().zip(&chain) {
            if let Some(index) = index(holders.link(link)) {
                let (first, last) = range.unwrap_or((index, index));
                *range = Some((first.min(index), last.max(index)));
            }
        }
    }
    for range in &mut all {
        *range = range.filter(|(first, last)| first != last);
    }
    all
}
