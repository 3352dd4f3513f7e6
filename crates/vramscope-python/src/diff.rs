//! The difference between two devices.

use serde::Serialize;
use vramscope_report::diff::{
    Diff, Pair, ProgramChanges, SideProgram, found_changes, program_changes,
};
use vramscope_report::peak::BandKind;
use vramscope_report::side::Side;
use vramscope_report::{Target, now};

/// What the program says about a difference.
#[derive(Default, Serialize)]
pub(crate) struct Words {
    /// What changed in the program, in sentences.
    program: Vec<String>,
    /// Settings, steps and inputs that differ: name, before, after.
    recording: Vec<[String; 3]>,
    /// Bands and counts: name, before, after, change, percent.
    totals: Vec<[String; 5]>,
}

impl Words {
    fn new(pair: &Pair) -> Self {
        let rows = pair.recording_rows().into_iter().map(|row| [row.name, row.a, row.b]);
        Self {
            program: pair.changes.as_ref().map(ProgramChanges::texts).unwrap_or_default(),
            recording: rows.collect(),
            totals: pair.total_texts(),
        }
    }
}

/// Compares a device before a change with one after it.
pub(crate) fn diff(before: Target<'_>, after: Target<'_>, band: BandKind) -> (Diff, Words) {
    now(async |budget| {
        let a = Side::new(before, band, budget).await;
        let b = Side::new(after, band, budget).await;
        let programs =
            (SideProgram::of(before, budget).await, SideProgram::of(after, budget).await);
        let mut changes: Option<ProgramChanges> = None;
        if let (Some(of_a), Some(of_b)) = &programs
            && let Some(found) = found_changes(of_a, of_b)
        {
            changes = Some(program_changes(before, &found, [of_a, of_b], &b, budget).await);
        }
        let named = |side: Side| (side.path.clone(), vec![(String::new(), side)]);
        let mut diff = Diff::new(named(a), named(b), band, None, &[]);
        let mut words = Words::default();
        if let [pair] = &mut diff.pairs[..] {
            pair.changes = changes;
            words = Words::new(pair);
        }
        (diff, words)
    })
}
