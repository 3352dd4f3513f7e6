//! The rows of a comparison's tables, for text and for the page.

use super::{BytesDiff, CountDiff, Pair, SettingDiff};
use crate::Quantity;
use crate::peak::BandKind;
use crate::text::signed_count;
use serde::{Deserialize, Serialize};
use vramscope_trace::Exactness;
use vramscope_units::signed_grouped;

/// A property of the recording in A and in B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RecordingRow {
    /// The setting's key, or what is counted.
    pub name: String,
    /// The value in A.
    pub a: String,
    /// The value in B.
    pub b: String,
}

/// A number in A and in B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DiffRow {
    /// The stable name: `requested_bytes.peak`, `ooms`, `parameter`.
    pub key: String,
    /// The name in words: `requested peak`.
    pub label: String,
    /// The numbers.
    pub values: DiffValues,
    /// The change in percent of A.
    pub percent: String,
}

/// The numbers of a [`DiffRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(untagged)]
pub enum DiffValues {
    /// Bytes.
    Bytes(BytesDiff),
    /// A count.
    Count(CountDiff),
}

impl DiffRow {
    fn bytes(key: String, label: String, bytes: BytesDiff) -> Self {
        Self { key, label, values: DiffValues::Bytes(bytes), percent: bytes.percent() }
    }

    fn count(key: &str, label: &str, count: CountDiff) -> Self {
        let (key, label) = (key.to_owned(), label.to_owned());
        Self { key, label, values: DiffValues::Count(count), percent: count.percent() }
    }

    /// Whether A and B are equal.
    pub fn is_unchanged(&self) -> bool {
        match self.values {
            DiffValues::Bytes(bytes) => bytes.change.0 == 0,
            DiffValues::Count(count) => count.change.0 == 0,
        }
    }

    /// The cells of a text table: before, after, change, change in percent.
    fn cells(&self) -> [String; 4] {
        let [a, b, change] = match self.values {
            DiffValues::Bytes(of) => amount(of),
            DiffValues::Count(of) => {
                [signed_grouped(of.a.0), signed_grouped(of.b.0), signed_count(of.change.0)]
            }
        };
        [a, b, change, self.percent.clone()]
    }
}

/// Bytes in A, in B and their change in words.
pub fn amount(bytes: BytesDiff) -> [String; 3] {
    let signed = |bytes: i64| Quantity::signed_bytes(bytes).text;
    [signed(bytes.a.0), signed(bytes.b.0), Quantity::change_of_bytes(bytes.change.0).text]
}

impl Pair {
    /// The rows of the table of settings, steps and inputs. Equal steps and inputs have a row only
    /// beside others that differ.
    pub fn recording_rows(&self) -> Vec<RecordingRow> {
        // A key that is in one file only belongs to another release of PyTorch.
        let setting = |s: &SettingDiff| {
            Some(RecordingRow { name: s.key.clone(), a: s.a.clone()?, b: s.b.clone()? })
        };
        let mut rows: Vec<RecordingRow> = self.settings.iter().filter_map(setting).collect();
        let inputs = self.tokens.map(|tokens| tokens.input_bytes_per_step);
        let counts = [
            ("whole steps", Some([self.steps.a.0, self.steps.b.0])),
            ("input bytes per step", inputs.map(|of| [of.a.0, of.b.0])),
        ];
        let counts = counts.into_iter().filter_map(|(name, values)| Some((name, values?)));
        if !rows.is_empty() || counts.clone().any(|(_, [a, b])| a != b) {
            let row = |(name, [a, b]): (&str, [i64; 2])| RecordingRow {
                name: name.to_owned(),
                a: signed_grouped(a),
                b: signed_grouped(b),
            };
            rows.extend(counts.filter(|(_, values)| *values != [0, 0]).map(row));
        }
        rows
    }

    /// The rows of the main table: each band at its start (if not zero), peak and end, then counts.
    pub fn totals(&self) -> Vec<DiffRow> {
        self.rows(|kind| kind.name().trim_end_matches("_bytes"))
    }

    fn rows(&self, name: impl Fn(BandKind) -> &'static str) -> Vec<DiffRow> {
        let mut rows = Vec::new();
        for kind in BandKind::ALL {
            let band = self.band(kind);
            let name = name(kind);
            let is_exact = band.exactness == Exactness::Exact;
            let estimate = if is_exact { "" } else { " (estimate)" };
            let row = |when: &str, more: &str, bytes: BytesDiff| {
                let label = format!("{name} {when}{more}");
                DiffRow::bytes(format!("{}.{when}", kind.name()), label, bytes)
            };
            rows.push(row("peak", estimate, band.peak));
            if (band.start.a.0, band.start.b.0) != (0, 0) {
                rows.push(row("start", "", band.start));
            }
            rows.push(row("end", "", band.end));
        }
        rows.push(DiffRow::count("blocks", "blocks at the peak", self.blocks));
        rows.push(DiffRow::count("ooms", "out-of-memory events", self.ooms));
        rows.push(DiffRow::count("findings", "findings", self.findings.count));
        rows
    }

    /// Steps and inputs, which text has in the table of the recording.
    pub fn recording_totals(&self) -> Vec<DiffRow> {
        let mut rows = Vec::new();
        if (self.steps.a.0, self.steps.b.0) != (0, 0) {
            rows.push(DiffRow::count("steps", "whole steps", self.steps));
        }
        let row = |bytes| {
            DiffRow::bytes("input_bytes_per_step".to_owned(), "input per step".to_owned(), bytes)
        };
        rows.extend(self.tokens.map(|tokens| row(tokens.input_bytes_per_step)));
        rows
    }

    /// The rows of the table of categories.
    pub fn category_rows(&self) -> Vec<DiffRow> {
        let row = |of: &super::CategoryDiff| {
            let label = crate::text::category(of.category).to_owned();
            DiffRow::bytes(of.category.name().to_owned(), label, of.bytes)
        };
        self.categories.iter().map(row).collect()
    }

    /// The main table as text: name, before, after, change, change in percent.
    pub fn total_texts(&self) -> Vec<[String; 5]> {
        let text = |row: DiffRow| {
            let [a, b, change, percent] = row.cells();
            [row.label, a, b, change, percent]
        };
        // Text names bands as JSON does.
        self.rows(BandKind::name).into_iter().map(text).collect()
    }
}
