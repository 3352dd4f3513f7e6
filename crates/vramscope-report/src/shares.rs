//! Bytes by category.

use serde::{Deserialize, Serialize};
use vramscope_inference::Category;
use vramscope_units::Bytes;

/// The bytes and blocks of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CategoryShare {
    /// The category.
    pub category: Category,
    /// Bytes.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u32,
}

/// Sums bytes and blocks by category, most bytes first.
pub fn by_category(blocks: impl Iterator<Item = (Category, u64)>) -> Vec<CategoryShare> {
    let mut shares: Vec<CategoryShare> = Category::ALL
        .iter()
        .map(|c| CategoryShare { category: *c, bytes: Bytes(0), blocks: 0 })
        .collect();
    for (category, bytes) in blocks {
        let share = &mut shares[category as usize];
        share.bytes.0 += bytes;
        share.blocks += 1;
    }
    shares.retain(|s| s.blocks > 0);
    shares.sort_by_key(|s| std::cmp::Reverse(s.bytes));
    shares
}

/// The category of a row with these shares: `mixed` for more than one category.
pub fn row_category(shares: &[CategoryShare]) -> Option<&'static str> {
    match shares {
        [] => None,
        [only] => Some(only.category.name()),
        _ => Some("mixed"),
    }
}
