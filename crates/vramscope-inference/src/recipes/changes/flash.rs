//! Attention by a kernel that makes no maps.

use crate::recipes::facts::{Facts, attention_maps};
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined};

/// `attention:flash`: the maps vanish.
///
/// # Errors
/// No softmax of attention is in the call stacks.
pub(super) fn flash(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let maps = attention_maps(lives, facts);
    for &index in &maps {
        lives.all[index].drop();
    }
    if maps.is_empty() {
        return Err(Declined::NoMaps);
    }
    Ok(Applied { changed: maps.len() as u32, ..Applied::default() })
}
