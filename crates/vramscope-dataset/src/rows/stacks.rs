//! The tables `stacks` and `frames`.

use crate::columns::{Bound, TableRows};
use crate::ids::{file_in_package, frame_id, frame_key, function, stack_id};
use crate::table::Table;
use parquet::errors::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_report::columns::Rows;
use vramscope_report::text::frame_label;
use vramscope_report::{SnapshotEntry, row_site};
use vramscope_snapshot::{Frame, Snapshot, StackId, StrId};
use vramscope_trace::NoStack;

/// The stacks and frames that a part has already.
#[derive(Default)]
pub(crate) struct Known {
    stacks: FxHashSet<String>,
    frames: FxHashSet<i64>,
}

/// `stacks`.
pub(crate) struct StackRows;

pub(crate) struct StackRow<'a> {
    id: &'a str,
    site: &'a str,
    frames: &'a [i64],
    lines: &'a [i32],
}

impl Rows for StackRows {
    type Row<'a> = StackRow<'a>;
}

impl TableRows for StackRows {
    const NAME: &'static str = "stacks";
    const ROW: &'static str = "a call stack of the part; several parts may have it";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<StackRows>;
        vec![
            Of::name(
                "stack_id",
                "128-bit hash of the frames' files and functions, without lines",
                |row| row.id.into(),
            )
            .distinct(),
            Of::name("site", "Call site without its line", |row| row.site.into()),
            Of::int64_list("frame_ids", "Frames, innermost first", |row| row.frames),
            Of::int32_list(
                "lines",
                "Lines of the frames of the first such stack; 0 if unknown",
                |row| row.lines,
            ),
        ]
    }
}

/// `frames`.
pub(crate) struct FrameRows;

pub(crate) struct FrameRow<'a> {
    id: i64,
    name: &'a str,
    file: &'a str,
}

impl Rows for FrameRows {
    type Row<'a> = FrameRow<'a>;
}

impl TableRows for FrameRows {
    const NAME: &'static str = "frames";
    const ROW: &'static str = "a frame of the part's stacks; several parts may have it";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<FrameRows>;
        vec![
            Of::new("frame_id", "64-bit hash of file and function", |row| row.id),
            Of::name("name", "Function", |row| row.name.into()).distinct(),
            Of::name("file", "File: its path within a package, else its name", |row| {
                row.file.into()
            }),
        ]
    }
}

/// A stack as rows name it.
pub(crate) struct Named {
    /// `None` if there are no frames.
    pub(crate) id: Option<String>,
    /// The call site with its line, or why there is none.
    pub(crate) site: String,
}

/// The stacks that the rows of a snapshot name.
pub(crate) struct Stacks<'a> {
    entry: &'a SnapshotEntry,
    known: &'a mut Known,
    named: Vec<Named>,
    /// Where in `named` a stack is.
    places: FxHashMap<(StackId, Option<NoStack>), usize>,
    /// The stacks that the part does not have yet, in order.
    new: Vec<(String, StackId)>,
    frames: Frames,
}

/// The functions and files of frames as they count in ids.
#[derive(Default)]
struct Frames(FxHashMap<(StrId, StrId), Counted>);

/// A frame as it counts in ids.
struct Counted {
    id: i64,
    name: String,
    file: String,
}

impl<'a> Stacks<'a> {
    pub(crate) fn new(entry: &'a SnapshotEntry, known: &'a mut Known) -> Self {
        let (named, places) = (Vec::new(), FxHashMap::default());
        Self { entry, known, named, places, new: Vec::new(), frames: Frames::default() }
    }

    /// A stack as a row names it.
    pub(crate) fn name(&mut self, stack: StackId, no_stack: Option<NoStack>) -> &Named {
        let place = match self.places.get(&(stack, no_stack)) {
            Some(&place) => place,
            None => {
                let site = row_site(self.entry, stack, no_stack);
                let named = Named { id: self.id(stack), site };
                self.named.push(named);
                self.places.insert((stack, no_stack), self.named.len() - 1);
                self.named.len() - 1
            }
        };
        &self.named[place]
    }

    fn id(&mut self, stack: StackId) -> Option<String> {
        let snapshot = &self.entry.snapshot;
        // Stacks of compiled code differ in places that the model's line does not have.
        let stack = self.entry.sites.same_line(stack);
        if snapshot.stack(stack).len() == 0 {
            return None;
        }
        let mut key = Vec::new();
        for frame in snapshot.stack(stack) {
            let counted = self.frames.get(snapshot, frame);
            frame_key(&mut key, &counted.name, &counted.file);
        }
        let id = stack_id(&key);
        if self.known.stacks.insert(id.clone()) {
            self.new.push((id.clone(), stack));
        }
        Some(id)
    }

    /// Adds the stacks and frames that the part does not have yet.
    pub(crate) fn finish(
        self,
        stacks: &mut Table<StackRows>,
        frames: &mut Table<FrameRows>,
    ) -> Result<()> {
        let Self { entry, known, new, frames: mut counted, .. } = self;
        let snapshot = &entry.snapshot;
        for (id, stack) in new {
            let (mut ids, mut lines) = (Vec::new(), Vec::new());
            for frame in snapshot.stack(stack) {
                let Counted { id, name, file } = counted.get(snapshot, frame);
                ids.push(*id);
                lines.push(i32::try_from(frame.line).unwrap_or(i32::MAX));
                if known.frames.insert(*id) {
                    frames.push(&FrameRow { id: *id, name, file })?;
                }
            }
            let site = entry.sites.get(stack).frame.map_or_else(String::new, |frame| {
                let Counted { name, file, .. } = counted.get(snapshot, frame);
                frame_label(name, file, 0)
            });
            stacks.push(&StackRow { id: &id, site: &site, frames: &ids, lines: &lines })?;
        }
        Ok(())
    }
}

impl Frames {
    fn get(&mut self, snapshot: &Snapshot, frame: Frame) -> &Counted {
        self.0.entry((frame.name, frame.file)).or_insert_with(|| {
            let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
            let (name, file) = (function(&name), file_in_package(&file));
            Counted { id: frame_id(name, &file), name: name.into(), file: file.into() }
        })
    }
}
