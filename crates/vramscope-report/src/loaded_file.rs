//! A loaded file: its snapshots, with the call sites and traces that every report needs.

use crate::code::has_line;
use crate::derived::DeviceData;
use crate::shapes::widths_of_text;
use crate::sidecar::holders::Holders;
use crate::sidecar::{DeviceMemory, Sidecar};
use crate::summary::{ErrorKind, ErrorSummary};
use crate::target::Target;
use std::collections::BTreeSet;
use std::ops::Range;
use vramscope_inference::{Release, Rules, Widths};
use vramscope_snapshot::{
    CAPACITY_CHECKS_PER_FILE, DeviceKind, FileFault, FrameId, LoadError, NamedSnapshot, Reader,
    Snapshot,
};
use vramscope_trace::{Sites, Trace};

/// A loaded file.
pub struct LoadedFile {
    /// The path as given by the user.
    pub path: String,
    /// Stored size of the file in bytes.
    pub bytes: u64,
    /// The snapshots. An HTML page may contain several, all other files contain one.
    pub entries: Vec<SnapshotEntry>,
}

/// One snapshot of a file.
pub struct SnapshotEntry {
    /// The file's path, followed by `#name` if the file contains several snapshots.
    pub path: String,
    /// The snapshot's name inside the file; empty if the file is the snapshot.
    pub name: String,
    /// Stored size of the file in bytes.
    pub file_bytes: u64,
    /// The tables.
    pub snapshot: Snapshot,
    /// The call sites of the snapshot's stacks.
    pub sites: Sites,
    /// One trace for each device with events or segments.
    pub traces: Vec<Trace>,
    /// Derived data of each trace.
    pub(crate) data: Vec<DeviceData>,
    pub(crate) rules: Rules,
    /// The file beside the snapshot; an error says why it cannot be used.
    sidecar: Option<Result<Box<Sidecar>, String>>,
    /// The widths of the model that the user gives; an error says why they cannot be used.
    widths: Option<Result<Vec<Widths>, String>>,
}

impl LoadedFile {
    /// Builds the traces and call sites of the snapshots that a reader found.
    pub fn new(path: String, bytes: u64, named: Vec<NamedSnapshot>) -> Self {
        let entries = named.into_iter().map(|one| SnapshotEntry::new(&path, bytes, one)).collect();
        Self { path, bytes, entries }
    }

    /// The source files that call stacks of the file name.
    pub fn source_files(&self) -> BTreeSet<String> {
        let of = |snapshot: &Snapshot| -> Vec<String> {
            let ids = (0..snapshot.frames.len() as u32).map(FrameId);
            let frames = ids.map(|id| snapshot.frame(id)).filter(|&f| has_line(snapshot, f));
            frames.map(|frame| snapshot.text(frame.file).into_owned()).collect()
        };
        self.entries.iter().flat_map(|entry| of(&entry.snapshot)).collect()
    }

    /// A device by its ordinal, in the snapshot at index `entry`; `None` if either does not exist.
    pub fn target(&self, entry: u32, device: u32) -> Option<Target<'_>> {
        let entry = self.entries.get(entry as usize)?;
        let index = entry.traces.iter().position(|t| t.device.device == device)?;
        Some(Target { path: &entry.path, entry, index })
    }
}

impl SnapshotEntry {
    fn new(file: &str, file_bytes: u64, named: NamedSnapshot) -> Self {
        let NamedSnapshot { name, snapshot } = named;
        let (traces, sites) = (Trace::all(&snapshot), Sites::new(&snapshot));
        let data = traces.iter().map(|_| DeviceData::default()).collect();
        let path = if name.is_empty() { file.to_owned() } else { format!("{file}#{name}") };
        Self {
            path,
            name,
            file_bytes,
            snapshot,
            sites,
            traces,
            data,
            rules: Rules::default(),
            sidecar: None,
            widths: None,
        }
    }

    /// Reads the file beside the snapshot, and drops what was derived without it.
    pub fn set_sidecar(&mut self, json: &[u8]) {
        self.data.iter_mut().for_each(|data| *data = DeviceData::default());
        let parsed = Sidecar::parse(json).and_then(|sidecar| sidecar.of_recording(&self.traces));
        if let Some(kind) = parsed.as_ref().ok().and_then(Sidecar::device_kind) {
            self.set_kind(kind);
        }
        self.sidecar = Some(parsed.map(Box::new));
    }

    /// The kind of a device; CUDA if the snapshot does not have it.
    pub fn device_kind(&self, ordinal: u32) -> DeviceKind {
        let device = self.traces.iter().find(|trace| trace.device.device == ordinal);
        device.map_or_else(DeviceKind::default, |trace| trace.device.kind)
    }

    /// Sets the kind of the devices that the snapshot itself does not tell from CUDA's.
    fn set_kind(&mut self, kind: DeviceKind) {
        let kinds = self.traces.iter_mut().map(|trace| &mut trace.device.kind);
        let kinds = kinds.chain(self.snapshot.devices.iter_mut().map(|device| &mut device.kind));
        kinds.filter(|known| **known == DeviceKind::Cuda).for_each(|known| *known = kind);
    }

    /// The file beside the snapshot could not be read, for this reason.
    pub fn refuse_sidecar(&mut self, reason: String) {
        self.sidecar = Some(Err(reason));
    }

    /// The file beside the snapshot, if it is there and can be used.
    pub fn sidecar(&self) -> Option<&Sidecar> {
        self.sidecar.as_ref()?.as_deref().ok()
    }

    /// What holds blocks, if the file beside the snapshot tells it.
    pub fn holders(&self) -> Option<&Holders> {
        self.sidecar()?.holders.as_deref()
    }

    /// A line of source, without the space around it: from the file beside the snapshot, or from
    /// the snapshot itself.
    pub fn source(&self, file: &str, line: u32) -> Option<&str> {
        let beside = || self.sidecar()?.source(file, line);
        let within = || self.snapshot.source_line(file, line).map(str::trim);
        beside().or_else(within).filter(|line| !line.is_empty())
    }

    /// Why the file beside the snapshot, or a part of it, is not used, as a warning.
    pub fn sidecar_fault(&self) -> Option<String> {
        match self.sidecar.as_ref()? {
            Err(reason) => Some(format!("the file beside the snapshot is not used: {reason}")),
            Ok(sidecar) if sidecar.left_out.is_empty() => None,
            Ok(sidecar) => Some(format!(
                "parts of the file beside the snapshot are not used: {}",
                sidecar.left_out.join("; ")
            )),
        }
    }

    /// Sets the widths of the model, as the user gave them. Without them, the widths are inferred
    /// from the sizes of parameters. Call it before anything is derived.
    pub fn set_widths(&mut self, widths: Vec<Widths>) {
        self.widths = Some(Ok(widths));
    }

    /// Reads widths that the user gives, as [`widths_of_text`] does. Call it before anything is
    /// derived.
    pub fn read_widths(&mut self, text: &str) {
        self.widths = Some(widths_of_text(text));
    }

    /// The widths that the user gives.
    pub fn given_widths(&self) -> Option<&Vec<Widths>> {
        self.widths.as_ref()?.as_ref().ok()
    }

    /// Why the widths that the user gives are not used, as a warning.
    pub fn widths_fault(&self) -> Option<String> {
        let reason = self.widths.as_ref()?.as_ref().err()?;
        Some(format!("the given dimensions of the model are not used: {reason}"))
    }

    /// The memory of the device of the trace at `index` when the snapshot was written, as the file
    /// beside it says.
    pub fn device_memory(&self, index: usize) -> Option<&DeviceMemory> {
        self.sidecar()?.device(self.traces[index].device.device)
    }

    /// The release of PyTorch that the file beside the snapshot names.
    pub(crate) fn release(&self) -> Option<Release> {
        Release::parse(self.sidecar()?.torch.as_deref()?)
    }

    /// The device to show first: one that ran out of memory, then the one with the highest peak of
    /// `requested_bytes`. Pinned host memory only if there is no other.
    pub fn default_trace(&self) -> Option<&Trace> {
        // `max_by_key` takes the last of equals. Users expect the first device.
        self.traces.iter().rev().max_by_key(|trace| {
            let is_device = !trace.device.kind.is_host();
            (
                is_device,
                !trace.ooms.is_empty(),
                trace.requested_band.peak,
                trace.device.segments.len(),
            )
        })
    }
}

/// Reads a file from chunks of bytes.
pub struct FileReader {
    path: String,
    total: u64,
    read: u64,
    reader: Reader,
}

/// The minimum number of bytes between two projections of the row count.
const MIN_PIECE_BYTES: usize = 1 << 16;

/// Bytes to feed between two projections of the row count, for a file of `total` bytes.
///
/// The start of a file is not representative. Estimating again early avoids large reallocations.
pub fn piece_len(total: u64) -> usize {
    MIN_PIECE_BYTES.max((total / CAPACITY_CHECKS_PER_FILE) as usize)
}

impl FileReader {
    /// Reads the file at `path`, of `total` bytes (0 when unknown).
    pub fn new(path: &str, total: u64) -> Self {
        Self { path: path.to_owned(), total, read: 0, reader: Reader::default() }
    }

    /// Keeps only these events of each trace, and the events of blocks that are live in the range.
    /// Call it before the first byte.
    #[must_use]
    pub fn of_events(mut self, events: Range<u32>) -> Self {
        self.reader = Reader::for_event_range(events);
        self
    }

    /// Limits the bytes of memory that reading takes. Call it before the first byte, after
    /// [`FileReader::of_events`].
    #[must_use]
    pub fn within(mut self, memory: u64) -> Self {
        self.reader = self.reader.with_max_memory(memory);
        self
    }

    /// The path as given by the user.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file's size in bytes; 0 when unknown.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of the file read so far, packed.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The reader of the tables.
    pub fn tables(&self) -> &Reader {
        &self.reader
    }

    /// The reader of the tables.
    pub fn tables_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// The file is not a snapshot.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), ErrorSummary> {
        for piece in chunk.chunks(piece_len(self.total)) {
            self.feed_piece(piece, self.read + piece.len() as u64)?;
            self.reserve_ahead();
        }
        Ok(())
    }

    /// Reads a piece, without [`FileReader::reserve_ahead`]. The piece may be unpacked; with it,
    /// `read` bytes of the packed file are read.
    ///
    /// # Errors
    /// The file is not a snapshot.
    pub fn feed_piece(&mut self, piece: &[u8], read: u64) -> Result<(), ErrorSummary> {
        self.read = read;
        let fed = self.reader.feed(piece);
        fed.map_err(|error| ErrorSummary::new(&error, self.reader.may_be_snapshot()))
    }

    /// Reserves capacity for the rows of the whole file, projected from the bytes read so far.
    pub fn reserve_ahead(&mut self) {
        self.reader.reserve_ahead(self.read, self.total);
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The file is not a complete snapshot.
    pub fn finish(self) -> Result<LoadedFile, ErrorSummary> {
        let may_be_snapshot = self.reader.may_be_snapshot();
        let named =
            self.reader.finish().map_err(|error| ErrorSummary::new(&error, may_be_snapshot))?;
        Ok(LoadedFile::new(self.path, self.read, named))
    }
}

impl ErrorSummary {
    /// The summary of an error. `may_be_snapshot` is [`Reader::may_be_snapshot`].
    fn new(error: &LoadError, may_be_snapshot: bool) -> Self {
        Self {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            kind: match error.fault(may_be_snapshot) {
                FileFault::NoSnapshot => ErrorKind::NoSnapshot,
                FileFault::Damaged => ErrorKind::Damaged,
            },
            byte_offset: error.byte_offset(),
        }
    }
}
