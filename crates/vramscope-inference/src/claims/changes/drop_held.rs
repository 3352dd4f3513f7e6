//! What a reference holds is dropped at the end of each pass.

use super::prelude::*;

/// Only a file beside the snapshot names references, so no recipe can be written for it.
pub(super) static DROP_HELD: Change = Change {
    form: "drop:REFERENCE",
    is_of_request: true,
    apply: |lives, facts, value, _| drop_held(lives, facts, value),
    called: |value, _| value.to_string(),
    ..Change::PLAIN
};

/// The blocks die with the pass that made them, and right before the failed request at the latest.
///
/// # Errors
/// No request failed, or no block is of the window.
fn drop_held(lives: &mut Lives, facts: &Facts, value: &Value) -> Result<Applied, Declined> {
    let failure = lives.failure.ok_or(Declined::NoFailedPass)?;
    let Value::Held { births, .. } = value else { return Err(Declined::NoSite) };
    let passes = || facts.passes.iter().chain(&facts.generations);
    let mut changed = 0;
    for life in lives.all.iter_mut().filter(|life| (0.0..=failure.at).contains(&life.begin)) {
        // The failed request is one of them.
        if life.begin == failure.at {
            if births.binary_search(&(life.begin as u32)).is_ok() {
                life.drop();
                changed += 1;
            }
            continue;
        }
        let own = passes().filter(|pass| (pass.lead..pass.over()).contains(&life.begin));
        let end = own.map(Pass::over).fold(failure.at, f64::min) - 0.5;
        if life.end > end && births.binary_search(&(life.begin as u32)).is_ok() {
            (life.end, life.dies_in) = (end.max(life.begin + 0.5), Some((life.phase, life.step)));
            changed += 1;
        }
    }
    Applied::of(changed, Declined::NoSite)
}
