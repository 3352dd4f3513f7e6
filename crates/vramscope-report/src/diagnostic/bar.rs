//! Memory to scale, in letters.

use crate::lines::HoldingLine;
use crate::text::category as label_of;
use std::collections::BTreeMap;
use vramscope_inference::Category;
use vramscope_units::Bytes;

/// Memory at one moment, to scale.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What the whole is: `5.51 GiB for PyTorch`. Empty if the headline says it.
    pub title: String,
    /// The parts, blocks first. None is empty.
    pub parts: Vec<BarPart>,
    /// The request that failed; `None` without one.
    pub request: Option<Bytes>,
    /// The lines of the program that hold most of it, most first.
    pub lines: Vec<LineRow>,
}

/// A line of the program and what it holds.
#[derive(Clone, Debug)]
pub struct LineRow {
    /// `2.20 GiB`.
    pub bytes: String,
    /// `59 %`.
    pub share: String,
    /// `prog.py:11 forward`.
    pub site: String,
    /// `temporaries, was 0.70 GiB in step 3`.
    pub text: String,
}

impl From<&HoldingLine> for LineRow {
    fn from(line: &HoldingLine) -> Self {
        let category = label_of(line.category).to_owned();
        let what = line.does.as_deref().map_or(category, str::to_owned);
        let text: Vec<String> = [what].into_iter().chain(line.text.clone()).collect();
        Self {
            bytes: line.bytes.to_string(),
            share: format!("{} %", line.percent),
            site: match &line.called_from {
                Some(from) => format!("{} from {from}", line.site),
                None => line.site.clone(),
            },
            text: text.join(", "),
        }
    }
}

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct BarPart {
    /// The letter in a terminal.
    pub letter: char,
    /// The name of its category, or `holes`, `outside`, `others`, `free` or `other`.
    pub name: &'static str,
    /// Its words.
    pub label: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The letter of a category.
fn letter(of: Category) -> char {
    match of {
        Category::Parameter => 'P',
        Category::Gradient => 'G',
        Category::OptimizerState => 'O',
        Category::Buffer => 'B',
        Category::Input => 'I',
        Category::Activation => 'A',
        Category::Temporary => 'T',
        Category::Workspace => 'W',
        Category::Communication => 'C',
        Category::Cache => 'K',
        Category::Unknown => '?',
    }
}

/// The letter of several small categories together.
const OTHER: char = 'w';

/// Categories with a smaller share are one part, in percent.
const MIN_PERCENT: u64 = 3;

impl Bar {
    /// A bar of categories, and of what the allocator keeps beside them.
    pub(super) fn new(
        title: String,
        bytes: &BTreeMap<&'static str, Bytes>,
        request: Option<Bytes>,
        lines: &[HoldingLine],
    ) -> Self {
        let of = |name: &str| bytes.get(name).map_or(0, |bytes| bytes.0);
        let whole = bytes.values().map(|bytes| bytes.0).sum::<u64>();
        let is_small = |bytes: u64| bytes.saturating_mul(100) < whole.saturating_mul(MIN_PERCENT);
        let mut parts: Vec<BarPart> = Vec::new();
        let mut other = 0;
        for category in Category::STACKED {
            let bytes = of(category.name());
            if is_small(bytes) {
                other += bytes;
                continue;
            }
            parts.push(BarPart {
                letter: letter(category),
                name: category.name(),
                label: label_of(category).to_owned(),
                bytes: Bytes(bytes),
            });
        }
        let holes = of("rounding") + of("stuck") + of("small") + of("graph_pools");
        let free = of("idle") + of("device_free");
        let rest = [
            (OTHER, "other", "other", other),
            ('#', "holes", "holes and rounding", holes),
            ('-', "outside", "taken outside of PyTorch", of("outside")),
            ('.', "free", "free", free),
        ];
        let rest = rest.into_iter().filter(|part| part.3 > 0);
        parts.extend(rest.map(|(letter, name, label, bytes)| BarPart {
            letter,
            name,
            label: label.to_owned(),
            bytes: Bytes(bytes),
        }));
        Self { title, parts, request, lines: lines.iter().map(Into::into).collect() }
    }

    /// The bytes of all parts.
    pub fn whole(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes.0).sum()
    }

    /// The parts in cells, to scale: each part that is not empty has one at least. The request has
    /// the same scale.
    pub fn cells(&self, width: usize) -> (Vec<(usize, &BarPart)>, usize) {
        let whole = self.whole().max(1);
        let cells = |bytes: u64| {
            ((u128::from(bytes) * width as u128 + u128::from(whole) / 2) / u128::from(whole))
                as usize
        };
        let mut all: Vec<(usize, &BarPart)> =
            self.parts.iter().map(|part| (cells(part.bytes.0).max(1), part)).collect();
        // What rounding adds, the largest part gives.
        let sum: usize = all.iter().map(|cell| cell.0).sum();
        if let Some(largest) = all.iter_mut().max_by_key(|cell| cell.0) {
            largest.0 = (largest.0 + width).saturating_sub(sum).max(1);
        }
        let request = self.request.map_or(0, |bytes| cells(bytes.0).clamp(1, width));
        (all, request)
    }

    /// The parts, most bytes first.
    pub fn legend(&self) -> Vec<&BarPart> {
        let mut parts: Vec<&BarPart> = self.parts.iter().collect();
        let is_block = |part: &&BarPart| {
            !matches!(part.name, "holes" | "outside" | "others" | "free" | "other")
        };
        parts.sort_by_key(|part| (!is_block(part), std::cmp::Reverse(part.bytes)));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_wide_as_asked_and_shows_every_part() {
        let bytes = [("activation", 900), ("parameter", 60), ("stuck", 1), ("idle", 40)];
        let bytes = bytes.map(|(name, bytes)| (name, Bytes(bytes))).into_iter().collect();
        let bar = Bar::new(String::new(), &bytes, Some(Bytes(100)), &[]);
        for width in [10, 33, 60] {
            let (cells, request) = bar.cells(width);
            assert_eq!(cells.iter().map(|cell| cell.0).sum::<usize>(), width);
            assert!(cells.iter().all(|cell| cell.0 > 0) && request > 0);
        }
        let letters: String = bar.parts.iter().map(|part| part.letter).collect();
        assert_eq!(letters, "PA#.");
    }
}
