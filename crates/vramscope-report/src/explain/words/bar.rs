//! The device's memory to scale.

use crate::explain::causes::{About, Sums};
use crate::explain::figures::Size;
use crate::explain::record::{Bar, BarPart, FigureName};

/// The device's memory in parts. What the message does not tell is one part.
pub(super) fn bar(sums: &Sums) -> Option<Bar> {
    let capacity = sums.capacity?;
    let part = |part, label: &str, value: Option<About>, about: bool| {
        let bytes = value.map(About::bytes).filter(|bytes| bytes.0 > 0)?;
        Some(BarPart { part, label: label.to_owned(), bytes, about })
    };
    let is_split = sums.outside.is_some() && sums.others.is_some();
    // The rest of this process, where the message does not tell all that PyTorch holds.
    let allocated = sums.allocated.unwrap_or_default();
    let process = sums.process.filter(|_| sums.reserved.is_none() && sums.others.is_some());
    let process = process.map(|all| all.minus(allocated));
    let process_label = match sums.allocated {
        Some(_) => "rest of this process",
        None => "this process",
    };
    let parts = [
        part(FigureName::Allocated, "allocated by PyTorch", sums.allocated, false),
        part(FigureName::Unallocated, "reserved but unallocated", sums.unallocated, false),
        part(
            FigureName::OutsidePytorch,
            "this process outside of PyTorch",
            sums.outside.filter(|_| is_split),
            true,
        ),
        part(FigureName::ThisProcess, process_label, process, sums.allocated.is_some()),
        part(
            FigureName::OtherProcesses,
            "other processes and the driver",
            sums.others.filter(|_| is_split || process.is_some()),
            true,
        ),
        part(FigureName::NotPytorch, "not PyTorch's", sums.not_pytorch.filter(|_| !is_split), true),
        part(FigureName::Free, "free", sums.free, false),
    ];
    let mut parts: Vec<BarPart> = parts.into_iter().flatten().collect();
    let sum: u128 = parts.iter().map(|part| u128::from(part.bytes.0)).sum();
    let whole = u128::from(capacity.bytes().0);
    let is_told = is_split || process.is_some() || sums.not_pytorch.is_some();
    let is_known = is_told || sums.free.is_none() && parts.is_empty();
    if let (false, Some(rest)) = (is_known, whole.checked_sub(sum)) {
        let label = match (sums.free, sums.allocated.or(sums.process)) {
            (None, _) => "in use or free",
            (Some(_), None) => "in use",
            (Some(_), Some(_)) => "other use",
        };
        let rest = About::from(Size { bytes: u64::try_from(rest).ok()?, rounding: 0 });
        let at = parts.len() - usize::from(sums.free.is_some_and(|free| free.bytes().0 > 0));
        parts.splice(at..at, part(FigureName::Untold, label, Some(rest), true));
    }
    // What does not add up to the device is no picture of it: 2 % are the errors of the figures.
    let sum: u128 = parts.iter().map(|part| u128::from(part.bytes.0)).sum();
    let adds_up = sum.abs_diff(whole) * 50 <= whole && whole > 0 && !parts.is_empty();
    let asked = sums.asked.map(About::bytes);
    adds_up.then(|| Bar { bytes: capacity.bytes(), parts, asked })
}
