//! The story of a process in words.

use super::{Evidence, MIN_GROWTH, Process, When};
use crate::text::{category as category_label, file_name, rank_name};
use vramscope_inference::Category;
use vramscope_units::{Bytes, grouped};

/// The most moments whose bytes are named one by one.
const MAX_NAMED: usize = 4;

/// The most call sites or categories in the text.
const MAX_GROWN: usize = 3;

/// `3 moments of one process: 1.20 GiB, 1.50 GiB and 1.80 GiB in use after the last whole step of
/// each. It grew by 600.0 MiB: 600.0 MiB at train.py:88 step.`
pub(super) fn text(process: &Process) -> String {
    let Process { moments, growth_bytes, .. } = process;
    let bytes: Vec<String> = moments.iter().map(|moment| Bytes(moment.bytes).to_string()).collect();
    let listed = match &bytes[..] {
        [first, .., last] if bytes.len() > MAX_NAMED => format!("{first} at first, {last} at last"),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
        [] => String::new(),
    };
    let when = match process.when {
        When::LastStep => "after the last whole step of each",
        When::Dump => "when each was taken",
    };
    let growth = Bytes(growth_bytes.unsigned_abs());
    let change = match growth_bytes {
        _ if growth.0 < MIN_GROWTH => "It did not grow.".to_owned(),
        ..0 => format!("It fell by {growth}."),
        _ => format!("It grew by {growth}{}.", grown(process)),
    };
    let count = grouped(moments.len() as u64);
    let what = match process.evidence {
        Evidence::Events | Evidence::Blocks => "moments of one process",
        Evidence::Names => "iterations",
    };
    format!("{count} {what}: {listed} in use {when}. {change}")
}

/// What grew, by call site, else by category.
fn grown(process: &Process) -> String {
    let at = |site: &super::SiteGrowth| format!("{} at {}", Bytes(site.bytes), site.site);
    let mut parts: Vec<String> = process.sites.iter().take(MAX_GROWN).map(at).collect();
    if parts.is_empty() {
        let grown = |category: Category| {
            let bytes = process.categories.get(category.name())?.max(&0).unsigned_abs();
            (bytes >= MIN_GROWTH).then_some((bytes, category_label(category)))
        };
        let mut all: Vec<(u64, &str)> = Category::ALL.into_iter().filter_map(grown).collect();
        all.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
        let part = |(bytes, label): (u64, &str)| format!("{} {label}", Bytes(bytes));
        parts = all.into_iter().take(MAX_GROWN).map(part).collect();
    }
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// Puts the rank or the first file before the text: there are several processes.
pub(super) fn name(process: &mut Process) {
    if let Some(first) = process.moments.first() {
        let owner = match process.rank {
            Some(_) => rank_name(process.rank, &first.path),
            None => format!("from {}", file_name(&first.path)),
        };
        process.text.insert_str(0, &format!("{owner}: "));
    }
}
