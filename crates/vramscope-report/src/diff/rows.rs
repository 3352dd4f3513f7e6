//! The rows of a comparison's tables, as text.

use super::{Change, Pair, SettingDiff};
use crate::Quantity;
use crate::peak::BandKind;
use crate::text::signed_count;
use vramscope_units::signed_grouped;

impl Pair {
    /// The rows of the table of settings, steps and inputs: name, before, after. Equal steps and
    /// inputs have a row only beside others that differ.
    pub fn recording_rows(&self) -> Vec<[String; 3]> {
        // A key that is in one file only belongs to another release of PyTorch.
        let setting = |s: &SettingDiff| Some([s.key.clone(), s.a.clone()?, s.b.clone()?]);
        let mut rows: Vec<[String; 3]> = self.settings.iter().filter_map(setting).collect();
        let number = signed_grouped;
        let row = |name: &str, c: Change| [name.to_owned(), number(c.a), number(c.b)];
        let inputs = self.tokens.map(|tokens| tokens.input_bytes_per_step);
        let counts = [("whole training steps", Some(self.steps)), ("input bytes per step", inputs)];
        let counts = counts.into_iter().filter_map(|(name, change)| Some((name, change?)));
        if !rows.is_empty() || counts.clone().any(|(_, change)| change.change != 0) {
            rows.extend(counts.filter(|(_, c)| (c.a, c.b) != (0, 0)).map(|(name, c)| row(name, c)));
        }
        rows
    }

    /// The rows of the main table: name, before, after, change, change in percent.
    pub fn total_rows(&self) -> Vec<[String; 5]> {
        let row = |name: &str, change: Change| {
            let by = Quantity::change_of_bytes(change.change).text;
            [name.to_owned(), bytes(change.a), bytes(change.b), by, change.percent()]
        };
        let mut rows = Vec::new();
        for kind in BandKind::ALL {
            let band = self.band(kind);
            let estimate = if band.exactness == "exact" { "" } else { " (estimate)" };
            rows.push(row(&format!("{} peak{estimate}", kind.name()), band.peak));
            if band.start.a != 0 || band.start.b != 0 {
                rows.push(row(&format!("{} start", kind.name()), band.start));
            }
            rows.push(row(&format!("{} end", kind.name()), band.end));
        }
        let count = |name: &str, change: Change| {
            let number = signed_grouped;
            let by = signed_count(change.change);
            [name.to_owned(), number(change.a), number(change.b), by, change.percent()]
        };
        rows.push(count("blocks at the peak", self.blocks));
        rows.push(count("out-of-memory events", self.ooms));
        rows.push(count("findings", self.findings.count));
        rows
    }
}

fn bytes(bytes: i64) -> String {
    Quantity::signed_bytes(bytes).text
}
