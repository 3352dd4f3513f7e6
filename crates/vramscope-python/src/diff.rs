//! The difference between two devices.

use serde::Serialize;
use vramscope_report::diff::{
    Diff, Pair, ProgramChanges, SideProgram, found_changes, program_changes,
};
use vramscope_report::peak::BandKind;
use vramscope_report::side::Side;
use vramscope_report::{Target, now};

/// A pair with its words.
#[derive(Serialize)]
pub(crate) struct Difference {
    #[serde(flatten)]
    pair: Option<Pair>,
    band: BandKind,
    /// What changed in the program, in sentences.
    program: Vec<String>,
    /// Settings, steps and inputs that differ: name, before, after.
    recording: Vec<[String; 3]>,
    /// Bands and counts: name, before, after, change, percent.
    totals: Vec<[String; 5]>,
}

/// Compares a device before a change with one after it.
pub(crate) fn diff(before: Target<'_>, after: Target<'_>, band: BandKind) -> Difference {
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
        let pair = Diff::new(named(a), named(b), band, None, &[]).pairs.pop();
        let pair = pair.map(|pair| Pair { changes, ..pair });
        let rows = |of: &Pair| -> Vec<[String; 3]> {
            of.recording_rows().into_iter().map(|row| [row.name, row.a, row.b]).collect()
        };
        let texts = |of: &Pair| of.changes.as_ref().map(ProgramChanges::texts);
        Difference {
            band,
            program: pair.as_ref().and_then(texts).unwrap_or_default(),
            recording: pair.as_ref().map(rows).unwrap_or_default(),
            totals: pair.as_ref().map(Pair::total_texts).unwrap_or_default(),
            pair,
        }
    })
}
