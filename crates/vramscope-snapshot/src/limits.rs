//! Limits of what a file may claim, so that all that is computed from it stays in range.

use crate::events::Events;
use crate::report::{LoadError, WarningKind};
use crate::segments::Segment;
use crate::snapshot::{Device, Snapshot};
use std::sync::Arc;
use vramscope_units::Bytes;

/// Limit of devices. PyTorch numbers them with 8 bits.
const MAX_DEVICES: usize = 1024;

/// Checks that devices and segments do not share their rows many times: what is computed from them
/// would take time and memory that the file's length does not explain.
pub(crate) fn check_sharing(
    devices: &[Device],
    segments: &[Segment],
    bytes: u64,
) -> Result<(), LoadError> {
    if devices.len() > MAX_DEVICES {
        return Err(LoadError::TooMany { what: "devices", found: devices.len() as u64 });
    }
    let events = devices.iter().map(|d| d.events.len() as u64);
    let blocks = segments.iter().map(|s| s.blocks.len() as u64);
    // An item of a list takes at least a byte.
    let found = events.chain(blocks).sum();
    if found > bytes {
        return Err(LoadError::TooMany { what: "events and blocks", found });
    }
    Ok(())
}

/// Limit of the sum of all sizes of a file, in bytes. Every sum of some of them, and every
/// difference of such sums, fits into 64 bits with a sign.
const MAX_SUM: u128 = 1 << 62;

/// Limits sizes that add up to more than [`MAX_SUM`], with a warning. No memory has such sizes. The
/// largest get equal shares of what the others leave, so that plausible sizes stay as they are.
pub(crate) fn saturate_sizes(snapshot: &mut Snapshot) {
    let events = &snapshot.events;
    let rest = || {
        let free = events.device_free.iter().map(|free| free.1);
        let blocks = snapshot.blocks.iter().flat_map(|b| [b.size, b.requested_size]);
        free.chain(blocks).chain(snapshot.segments.iter().flat_map(segment_sizes))
    };
    let sum = events.size.at_most() + rest().map(|bytes| u128::from(bytes.0)).sum::<u128>();
    if sum <= MAX_SUM {
        return;
    }
    // The first sum is an upper bound, because reading all sizes takes time.
    let sizes = (0..events.len()).map(|row| events.size.get(row)).chain(rest().map(|b| b.0));
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    let Some((most, count)) = share(&sizes) else { return };
    let largest = sizes.last().copied().unwrap_or(most);
    let events = Arc::make_mut(&mut snapshot.events);
    saturate_events(events, most);
    for block in &mut snapshot.blocks {
        saturate([&mut block.size, &mut block.requested_size], most);
    }
    for s in &mut snapshot.segments {
        saturate([&mut s.total_size, &mut s.allocated_size], most);
        saturate([&mut s.active_size, &mut s.requested_size], most);
    }
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    snapshot.report.warn_many(WarningKind::SizesTooLarge, None, count, || {
        format!(
            "the sizes add up to more than any memory has: those above {most} bytes, such as \
             {largest}, count as {most}"
        )
    });
}

/// The largest size that keeps the sum of sorted sizes within [`MAX_SUM`], and the number of larger
/// ones. `None` if the sum is within it.
fn share(sorted: &[u64]) -> Option<(u64, usize)> {
    let mut left = MAX_SUM;
    for (i, &bytes) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - i) as u128;
        if u128::from(bytes) > share {
            return Some((share as u64, sorted.len() - i));
        }
        left -= u128::from(bytes);
    }
    None
}

fn segment_sizes(s: &Segment) -> [Bytes; 4] {
    [s.total_size, s.allocated_size, s.active_size, s.requested_size]
}

fn saturate_events(events: &mut Events, most: u64) {
    for row in 0..events.size.len() {
        let size = events.size.get(row);
        if size > most {
            events.size.set(row, most);
        }
    }
    for (_, free) in &mut events.device_free {
        saturate([free], most);
    }
}

fn saturate<const N: usize>(sizes: [&mut Bytes; N], most: u64) {
    for size in sizes {
        size.0 = size.0.min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_sizes_share_what_the_others_leave() {
        let most = MAX_SUM as u64;
        assert_eq!(share(&[]), None);
        assert_eq!(share(&[1, most - 1]), None);
        assert_eq!(share(&[2, most - 1]), Some((most - 2, 1)));
        assert_eq!(share(&[1, 9, u64::MAX, u64::MAX]), Some(((most - 10) / 2, 2)));
        assert_eq!(share(&[u64::MAX; 5]), Some((most / 5, 5)));
    }
}
