//! The table `ranks`.

use crate::columns::{Bound, FILE, RANK, TableRows};
use crate::part::Source;
use crate::table::Table;
use parquet::errors::Result;
use std::borrow::Cow;
use vramscope_report::card::Card;
use vramscope_report::columns::{Number, Rows};
use vramscope_report::index::{FailedFile, NO_DEVICE};
use vramscope_report::info::{DeviceInfo, FileInfo, ProcessInfo, info};
use vramscope_report::peak::BandKind;
use vramscope_report::summary::{DeviceSummary, ErrorKind, ErrorSummary, FileSummary, of_entry};
use vramscope_report::{LoadedFile, SnapshotEntry, Target, exactness, rank_of};
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, Micros};

/// `ranks`.
pub(crate) struct Ranks;

/// A device of a file, or a file without one.
pub(crate) struct Row<'a> {
    source: &'a Source,
    file: &'a str,
    rank: Option<u32>,
    error: Option<(&'a str, &'static str)>,
    process: Option<&'a ProcessInfo>,
    /// The settings as JSON; `None` for a file that could not be read.
    settings: Option<String>,
    /// The figures of the device; `None` if there is none.
    card: Option<Card>,
    /// Other figures of the device, which its card lacks.
    device: Option<(&'a DeviceSummary, &'a DeviceInfo)>,
    warnings: Option<String>,
    /// The card, or the file without cards, as an index has it.
    entry: String,
}

impl Rows for Ranks {
    type Row<'a> = Row<'a>;
}

impl Row<'_> {
    /// A figure of the card.
    fn card<'r, V>(&'r self, of: impl Fn(&'r Card) -> V) -> Option<V> {
        self.card.as_ref().map(of)
    }

    /// A number of the device that the card lacks.
    fn of<V>(&self, of: impl Fn(&DeviceSummary) -> V) -> Option<V> {
        self.device.map(|(device, _)| of(device))
    }

    fn text(&self, of: fn(&DeviceSummary) -> &'static str) -> Option<Cow<'_, str>> {
        self.of(of).map(Into::into)
    }

    fn process(&self, of: fn(&ProcessInfo) -> &Option<String>) -> Option<Cow<'_, str>> {
        self.process.and_then(|process| of(process).as_deref()).map(Into::into)
    }
}

/// The names and descriptions of a band's columns: start, peak, event of the peak, end and
/// exactness.
const BANDS: [(BandKind, [[&str; 2]; 5]); 4] = [
    (
        BandKind::Requested,
        [
            ["requested_bytes_start", "`requested_bytes` before the window"],
            ["requested_bytes_peak", "Largest `requested_bytes`"],
            ["requested_bytes_peak_event", "First event with it"],
            ["requested_bytes_end", "`requested_bytes` after the last event"],
            ["requested_bytes_exactness", "`exact` or `estimate`"],
        ],
    ),
    (
        BandKind::Active,
        [
            ["active_bytes_start", "`active_bytes` before the window"],
            ["active_bytes_peak", "Largest `active_bytes`"],
            ["active_bytes_peak_event", "First event with it"],
            ["active_bytes_end", "`active_bytes` after the last event"],
            ["active_bytes_exactness", "`exact` or `estimate`"],
        ],
    ),
    (
        BandKind::Allocated,
        [
            ["allocated_bytes_start", "`allocated_bytes` before the window"],
            ["allocated_bytes_peak", "Largest `allocated_bytes`: `max_memory_allocated()`"],
            ["allocated_bytes_peak_event", "First event with it"],
            ["allocated_bytes_end", "`allocated_bytes` after the last event"],
            ["allocated_bytes_exactness", "`exact` or `estimate`"],
        ],
    ),
    (
        BandKind::Reserved,
        [
            ["reserved_bytes_start", "`reserved_bytes` before the window"],
            ["reserved_bytes_peak", "Largest `reserved_bytes`"],
            ["reserved_bytes_peak_event", "First event with it"],
            ["reserved_bytes_end", "`reserved_bytes` after the last event"],
            ["reserved_bytes_exactness", "`exact` or `estimate`"],
        ],
    ),
];

type Of = Bound<Ranks>;

/// A column of numbers of the device.
fn device<V: Number + 'static>(
    name: &'static str,
    description: &'static str,
    of: fn(&DeviceSummary) -> V,
) -> Of {
    Of::new(name, description, move |row| row.of(of))
}

/// A column of numbers of the card.
fn card<V: Number + 'static>(
    name: &'static str,
    description: &'static str,
    of: fn(&Card) -> V,
) -> Of {
    Of::new(name, description, move |row| row.card(of))
}

fn band_columns(of: BandKind, [start, peak, event, end, exact]: [[&'static str; 2]; 5]) -> [Of; 5] {
    [
        Of::new(start[0], start[1], move |row| row.card(|card| card.band(of).start)),
        Of::new(peak[0], peak[1], move |row| row.card(|card| card.band(of).peak)),
        Of::new(event[0], event[1], move |row| row.card(|card| card.band(of).peak_event)),
        Of::new(end[0], end[1], move |row| row.card(|card| card.band(of).end)),
        Of::maybe_name(exact[0], exact[1], move |row| {
            row.card(|card| exactness(card.band(of).exactness)).map(Into::into)
        }),
    ]
}

impl TableRows for Ranks {
    const NAME: &'static str = "ranks";
    const ROW: &'static str = "a device of a file, or a file that could not be read";

    fn columns() -> Vec<Bound<Self>> {
        let mut columns = vec![
            Of::name(FILE[0], FILE[1], |row| row.file.into()),
            Of::new(RANK[0], RANK[1], |row| row.rank),
            card(
                "device",
                "Device; 128 is pinned host memory; null if the file has none",
                |card| card.device,
            ),
            Of::name("path", "Path of the file", |row| row.source.path.to_string_lossy())
                .distinct(),
            Of::new("file_bytes", "Size of the file", |row| Bytes(row.source.bytes)),
            Of::new("modified_us", "When the file was last written", |row| {
                row.source.modified_us.map(Micros)
            }),
            Of::maybe_name("error", "Why the file could not be read", |row| {
                row.error.map(|(message, _)| message.into())
            })
            .distinct(),
            Of::maybe_name("error_kind", "`damaged`, `no_snapshot` or `unreadable`", |row| {
                row.error.map(|(_, kind)| kind.into())
            }),
            Of::maybe_name("kind", "`gpu` or `host`", |row| row.text(|device| device.kind)),
            Of::maybe_name(
                "host",
                "Where the process ran, from the file beside the snapshot",
                |row| row.process(|process| &process.host),
            ),
            Of::new(
                "world_size",
                "Processes of the job, from the file beside the snapshot",
                |row| row.process?.world_size,
            ),
            Of::maybe_name(
                "torch",
                "PyTorch's version, from the file beside the snapshot",
                |row| row.process(|process| &process.torch),
            ),
            Of::maybe_name("settings", "The allocator's settings as JSON", |row| {
                row.settings.as_deref().map(Into::into)
            })
            .distinct(),
            card("events", "Events of the trace", |card| card.events),
            device("start_us", "Time of the first event", |device| {
                device.window_us.map(|[start, _]| Micros(start))
            }),
            device("end_us", "Time of the last event", |device| {
                device.window_us.map(|[_, end]| Micros(end))
            }),
            Of::maybe_name(
                "coverage",
                "How much of the history the window has: `whole`, `partial` or `none`",
                |row| row.text(|device| device.coverage),
            ),
            Of::maybe_name("steps_by", "Evidence for steps", |row| {
                row.device.and_then(|(_, info)| info.steps_by).map(Into::into)
            }),
            Of::new("steps", "Whole steps in the window", |row| {
                row.device.map(|(_, info)| u32::try_from(info.steps).unwrap_or(u32::MAX))
            }),
            device("allocations", "Allocations in the window", |device| {
                u64::from(device.allocations_in_window)
            }),
            device(
                "preexisting_freed",
                "Blocks from before the window that are freed in it",
                |device| u64::from(device.preexisting_freed),
            ),
            device(
                "preexisting_live",
                "Blocks from before the window that are live at its end",
                |device| u64::from(device.preexisting_live),
            ),
            device("end_live_blocks", "Live blocks at the end", |device| {
                u64::from(device.end_live_blocks)
            }),
            device("segments", "Segments at the end", |device| device.segments),
        ];
        columns.extend(BANDS.into_iter().flat_map(|(of, names)| band_columns(of, names)));
        columns.extend([
            card("capacity_bytes", "What PyTorch could have on the device", |card| card.capacity),
            card("ooms", "Failed allocations", |card| card.ooms.len()),
            card("findings", "Findings", |card| card.findings.len() + card.other_findings.len()),
            Of::maybe_name(
                "warnings",
                "Warnings about the file and the device, a line each",
                |row| row.warnings.as_deref().map(Into::into),
            )
            .distinct(),
            Of::maybe_name("card", "Card of the device in an index, as JSON", |row| {
                Some(row.entry.as_str().into())
            })
            .distinct(),
        ]);
        columns
    }
}

/// Adds the rows of a snapshot: one for each device, or one that says that there is none.
pub(super) fn add(
    table: &mut Table<Ranks>,
    (file, rank): (&str, Option<u32>),
    source: &Source,
    loaded: &LoadedFile,
    entry: &SnapshotEntry,
    cards: Vec<Card>,
) -> Result<()> {
    let (summary, info) =
        (of_entry(loaded, entry), now(async |budget| info(&entry.path, entry, budget).await));
    let of = Read { source, file, rank, summary: &summary, info: &info };
    if summary.devices.is_empty() {
        return table.push(&of.row(None));
    }
    cards.into_iter().enumerate().try_for_each(|card| table.push(&of.row(Some(card))))
}

/// The cards of the devices of a snapshot.
pub(super) fn cards(entry: &SnapshotEntry) -> Vec<Card> {
    let card = |index| {
        let target = Target { path: &entry.path, entry, index };
        now(async |budget| Card::whole(target, budget).await).short()
    };
    (0..entry.traces.len()).map(card).collect()
}

/// Adds the row of a file that could not be read.
pub(crate) fn failed(
    table: &mut Table<Ranks>,
    source: &Source,
    error: &ErrorSummary,
) -> Result<()> {
    let path = source.path.to_string_lossy();
    let kind = match error.kind {
        ErrorKind::NoSnapshot => "no_snapshot",
        ErrorKind::Damaged => "damaged",
        ErrorKind::Unreadable => UNREADABLE,
    };
    table.push(&Row {
        source,
        file: &source.file,
        rank: rank_of(&path),
        error: Some((&error.message, kind)),
        process: None,
        settings: None,
        card: None,
        device: None,
        warnings: None,
        entry: FailedFile::new(&path, Bytes(source.bytes), error.message.as_str()).to_json(),
    })
}

/// The kind of error of a file that may be readable later.
pub(crate) const UNREADABLE: &str = "unreadable";

/// A snapshot that could be read.
struct Read<'a> {
    source: &'a Source,
    file: &'a str,
    rank: Option<u32>,
    summary: &'a FileSummary,
    info: &'a FileInfo,
}

impl<'a> Read<'a> {
    /// The row of the device with an index and a card; `None` for a snapshot without any.
    fn row(&self, device: Option<(usize, Card)>) -> Row<'a> {
        let Self { source, file, rank, summary, info } = *self;
        let (index, card) = device.unzip();
        let device = index.map(|index| (&summary.devices[index], &info.devices[index]));
        let settings: serde_json::Map<_, _> = info
            .settings
            .iter()
            .map(|(key, value)| {
                let json = serde_json::from_str(value).unwrap_or_else(|_| value.as_str().into());
                (key.clone(), json)
            })
            .collect();
        let about = |of: Option<u32>| of.is_none() || of == device.map(|(device, _)| device.device);
        let warnings = summary.warnings.iter().filter(|warning| about(warning.device));
        let warnings: Vec<&str> = warnings.map(|warning| warning.message.as_str()).collect();
        let entry = card.as_ref().map_or_else(
            || FailedFile::new(&summary.path, Bytes(source.bytes), NO_DEVICE).to_json(),
            Card::to_json,
        );
        Row {
            source,
            file,
            rank,
            error: None,
            process: info.process.as_ref(),
            settings: Some(serde_json::Value::from(settings).to_string()),
            card,
            device,
            warnings: (!warnings.is_empty()).then(|| warnings.join("\n")),
            entry,
        }
    }
}
