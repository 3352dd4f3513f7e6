//! The table `phases`.

use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use vramscope_inference::Category;
use vramscope_report::Target;
use vramscope_report::columns::Rows;
use vramscope_report::phases::{PhaseRecord, phases};
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, Change, EventIndex, PeakEvent};

/// `phases`.
pub(crate) struct Phases;

pub(crate) struct PhaseRow<'a> {
    step: Option<u32>,
    is_whole: bool,
    phase: &'a PhaseRecord,
}

impl Rows for Phases {
    type Row<'a> = Keyed<'a, PhaseRow<'a>>;
}

/// The column of a category's bytes, and what they are.
const CATEGORIES: [(&str, &str); Category::ALL.len()] = [
    ("parameter_bytes", "Parameters at that event"),
    ("gradient_bytes", "Gradients"),
    ("optimizer_state_bytes", "Optimizer state"),
    ("buffer_bytes", "Buffers"),
    ("input_bytes", "Inputs"),
    ("activation_bytes", "Activations"),
    ("temporary_bytes", "Temporaries"),
    ("workspace_bytes", "Workspaces"),
    ("communication_bytes", "Communication buffers"),
    ("cache_bytes", "Caches"),
    ("unknown_bytes", "Bytes of unknown category"),
];

impl TableRows for Phases {
    const NAME: &'static str = "phases";
    const ROW: &'static str = "a phase of a step";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Phases>;
        let mut columns = key();
        columns.extend([
            Of::new("step", "Step, from 0; null before the first and after the last", |row| {
                row.step
            }),
            Of::new("is_whole", "Whether the window has the whole step", |row| row.is_whole),
            Of::name(
                "phase",
                "`forward`, `backward`, `optimizer`, `evaluation`, `generation` or `other`",
                |row| row.phase.phase.into(),
            ),
            Of::new("begin_event", "First event", |row| EventIndex(row.phase.begin)),
            Of::new("end_event", "Event after the last", |row| EventIndex(row.phase.end)),
            Of::new("peak_bytes", "Largest `requested_bytes` in the phase", |row| {
                Bytes(row.phase.peak_bytes)
            }),
            Of::new("peak_event", "First event with it", |row| PeakEvent(row.phase.peak_event)),
            Of::new("blocks", "Live blocks at that event", |row| row.phase.blocks),
            Of::new("reserved_growth_bytes", "What `reserved_bytes` grew by", |row| {
                Change(row.phase.reserved_growth)
            }),
            Of::maybe_name("site", "Call site of the last allocation up to `peak_event`", |row| {
                row.phase.site.as_deref().map(Into::into)
            }),
        ]);
        columns.extend((0..).zip(CATEGORIES).map(|(at, (name, description))| {
            Of::new(name, description, move |row| Bytes(row.phase.categories.0[at]))
        }));
        columns
    }
}

pub(super) fn add(table: &mut Table<Phases>, key: Key<'_>, target: Target<'_>) -> Result<()> {
    let report = now(async |budget| phases(target, None, budget).await);
    let mut row = |step: Option<u32>, is_whole: bool, phase: &PhaseRecord| {
        table.push(&key.row(PhaseRow { step, is_whole, phase }))
    };
    for step in &report.steps {
        step.phases.iter().try_for_each(|phase| row(Some(step.step), step.whole, phase))?;
    }
    report.outside.iter().try_for_each(|phase| row(None, false, phase))
}
