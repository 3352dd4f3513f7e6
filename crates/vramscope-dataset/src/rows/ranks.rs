//! The table `ranks`.

use crate::part::Source;
use crate::table::{Table, Value};
use parquet::errors::Result;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_report::capacity::capacity;
use vramscope_report::card::Card;
use vramscope_report::index::{FailedFile, NO_DEVICE};
use vramscope_report::info::{FileInfo, ProcessInfo, info};
use vramscope_report::summary::{
    BandSummary, DeviceSummary, ErrorKind, ErrorSummary, FileSummary, of_entry,
};
use vramscope_report::{LoadedFile, SnapshotEntry, Target, exactness, rank_of};
use vramscope_units::Bytes;

/// Adds the rows of a snapshot: one for each device, or one that says that there is none.
pub(super) fn add(
    table: &mut Table,
    [file, rank]: [Value<'_>; 2],
    source: &Source,
    loaded: &LoadedFile,
    entry: &SnapshotEntry,
) -> Result<()> {
    let (summary, info) = (of_entry(loaded, entry), info(&entry.path, entry));
    let row = Row { source, file, rank, summary: &summary, info: &info };
    if summary.devices.is_empty() {
        return row.push(table, None);
    }
    (0..summary.devices.len())
        .try_for_each(|index| row.push(table, Some(Target { path: &entry.path, entry, index })))
}

/// Adds the row of a file that could not be read.
pub(crate) fn failed(table: &mut Table, source: &Source, error: &ErrorSummary) -> Result<()> {
    let rank = rank_of(&source.path.to_string_lossy());
    let path = source.path.to_string_lossy();
    let kind = match error.kind {
        ErrorKind::NoSnapshot => "no_snapshot",
        ErrorKind::Damaged => "damaged",
        ErrorKind::Unreadable => UNREADABLE,
    };
    let card = FailedFile::new(&path, Bytes(source.bytes), error.message.as_str()).to_json();
    let mut row = [Value::Null; COLUMNS];
    row[COLUMNS - 1] = (&card).into();
    row[..8].copy_from_slice(&[
        (&source.file).into(),
        rank.into(),
        Value::Null,
        path.as_ref().into(),
        source.bytes.into(),
        source.modified_us.into(),
        (&error.message).into(),
        kind.into(),
    ]);
    table.push(&row)
}

/// The kind of error of a file that may be readable later.
pub(crate) const UNREADABLE: &str = "unreadable";

/// The number of columns.
const COLUMNS: usize = 49;

struct Row<'a> {
    source: &'a Source,
    file: Value<'a>,
    rank: Value<'a>,
    summary: &'a FileSummary,
    info: &'a FileInfo,
}

impl Row<'_> {
    fn push(&self, table: &mut Table, target: Option<Target<'_>>) -> Result<()> {
        let device = target.map(|target| &self.summary.devices[target.index]);
        let of = |of: fn(&DeviceSummary) -> Value<'static>| device.map_or(Value::Null, of);
        let info = target.map(|target| &self.info.devices[target.index]);
        let process = self.info.process.as_ref();
        let process_text = |of: fn(&ProcessInfo) -> &Option<String>| {
            process.and_then(|process| of(process).as_deref())
        };
        let path = self.source.path.to_string_lossy();
        let settings: serde_json::Map<_, _> = self
            .info
            .settings
            .iter()
            .map(|(key, value)| {
                let json = serde_json::from_str(value).unwrap_or_else(|_| value.as_str().into());
                (key.clone(), json)
            })
            .collect();
        let settings = serde_json::Value::from(settings).to_string();
        let about = |of: Option<u32>| of.is_none() || of == device.map(|device| device.device);
        let warnings = self.summary.warnings.iter().filter(|warning| about(warning.device));
        let warnings: Vec<&str> = warnings.map(|warning| warning.message.as_str()).collect();
        let warnings = (!warnings.is_empty()).then(|| warnings.join("\n"));
        let capacity = target.and_then(|target| {
            run_to_completion(capacity(target, &mut Budget::unlimited())).map(|of| of.bytes.0)
        });
        let card = match target {
            Some(target) => Card::new(target).short().to_json(),
            None => {
                FailedFile::new(&self.summary.path, Bytes(self.source.bytes), NO_DEVICE).to_json()
            }
        };
        let findings = target.map(|target| target.entry.findings(target.index).len());
        let [requested, active, allocated, reserved] = bands(device);
        table.push(&[
            self.file,
            self.rank,
            of(|device| device.device.into()),
            path.as_ref().into(),
            self.source.bytes.into(),
            self.source.modified_us.into(),
            Value::Null,
            Value::Null,
            of(|device| device.kind.into()),
            process_text(|process| &process.host).into(),
            process.and_then(|process| process.world_size).into(),
            process_text(|process| &process.torch).into(),
            (&settings).into(),
            of(|device| device.events.into()),
            of(|device| device.window_us.map(|[start, _]| start).into()),
            of(|device| device.window_us.map(|[_, end]| end).into()),
            of(|device| device.coverage.into()),
            info.and_then(|info| info.steps_by).into(),
            info.map(|info| info.steps).into(),
            of(|device| device.allocations_in_window.into()),
            of(|device| device.preexisting_freed.into()),
            of(|device| device.preexisting_live.into()),
            of(|device| device.end_live_blocks.into()),
            of(|device| device.segments.into()),
            requested[0],
            requested[1],
            requested[2],
            requested[3],
            requested[4],
            active[0],
            active[1],
            active[2],
            active[3],
            active[4],
            allocated[0],
            allocated[1],
            allocated[2],
            allocated[3],
            allocated[4],
            reserved[0],
            reserved[1],
            reserved[2],
            reserved[3],
            reserved[4],
            capacity.into(),
            of(|device| device.ooms.len().into()),
            findings.into(),
            warnings.as_deref().into(),
            (&card).into(),
        ])
    }
}

/// Start, peak, event of the peak, end and exactness of each band.
fn bands(device: Option<&DeviceSummary>) -> [[Value<'static>; 5]; 4] {
    let Some(device) = device else { return [[Value::Null; 5]; 4] };
    let band = |band: &BandSummary| {
        [
            band.start.0.into(),
            band.peak.0.into(),
            band.peak_event.0.into(),
            band.end.0.into(),
            exactness(band.exactness).into(),
        ]
    };
    [
        band(&device.requested_bytes),
        band(&device.active_bytes),
        band(&device.allocated_bytes),
        band(&device.reserved_bytes),
    ]
}
