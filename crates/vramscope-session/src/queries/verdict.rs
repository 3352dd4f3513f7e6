//! The verdict about a device, for the page.

use super::shares::fraction;
use crate::messages::views::{BarMark, BarPart, MemoryBar, VerdictCard};
use vramscope_inference::Category;
use vramscope_layout::Color;
use vramscope_report::verdict::{self, MemoryPart, verdict};
use vramscope_report::{Quantity, Target};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The verdict about one device.
pub(crate) async fn card(at: Target<'_>, budget: &mut Budget) -> VerdictCard {
    let verdict = verdict(at, budget).await;
    VerdictCard {
        severity: verdict.severity,
        finding: verdict.finding,
        headline: verdict.headline,
        detail: verdict.detail,
        bar: bar(&verdict.memory),
        actions: verdict.actions,
    }
}

/// A bar to scale; `None` if nothing was reserved.
pub(super) fn bar(memory: &verdict::MemoryBar) -> Option<MemoryBar> {
    let whole = memory.scale().0;
    if whole == 0 {
        return None;
    }
    let mut end = 0;
    let part = |part: &MemoryPart| {
        let from = end;
        end += part.bytes.0;
        BarPart {
            name: part.name.to_owned(),
            label: part.label.to_owned(),
            bytes: Quantity::bytes(part.bytes),
            title: title(part, memory),
            from: fraction(from, whole),
            to: fraction(end, whole),
            color: part.category.map(|category| Color::category(category as u8).word()),
            filter: part.category.map(|category| format!("category:{}", category.name())),
        }
    };
    let parts = memory.parts.iter().map(part).collect();
    let capacity = memory.capacity.map(|bytes| BarMark {
        at: fraction(bytes.0, whole),
        bytes: Quantity::bytes(bytes),
        label: format!("{bytes} for PyTorch"),
    });
    let request = memory.request.map(|bytes| BarPart {
        name: "request".to_owned(),
        label: "request".to_owned(),
        bytes: Quantity::bytes(bytes),
        title: format!("The request that failed: {bytes}"),
        from: fraction(memory.reserved.0, whole),
        to: fraction(memory.reserved.0 + bytes.0, whole),
        color: None,
        filter: None,
    });
    Some(MemoryBar {
        event: u32::try_from(memory.event).ok(),
        moment: if memory.is_estimate {
            format!("{} (sizes of blocks are estimates)", memory.moment)
        } else {
            memory.moment.clone()
        },
        parts,
        reserved: Quantity::bytes(memory.reserved),
        capacity,
        request,
    })
}

/// A part in words.
fn title(part: &MemoryPart, memory: &verdict::MemoryBar) -> String {
    let MemoryPart { name, label, bytes, category, note } = part;
    let is_reserved = !matches!(*name, "device_free" | "outside");
    let share = (u128::from(bytes.0) * 100 + u128::from(memory.reserved.0) / 2)
        / u128::from(memory.reserved.0.max(1));
    let share = if is_reserved {
        format!(", {share} % of {} reserved", Bytes(memory.reserved.0))
    } else {
        String::new()
    };
    let note = match category {
        Some(Category::Unknown) => ": no evidence for a category",
        _ if note.is_empty() => "",
        _ => return format!("{label}: {bytes}{share}; {note}"),
    };
    format!("{label}: {bytes}{share}{note}")
}
