//! Sums of blocks by source file, function and line.

use super::{Filter, Sums, by_stack};
use crate::{Target, slot_of, text};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StrId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{file_name, is_library};

/// What a [`SourcePlace`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// A source file.
    File,
    /// A function of a file.
    Function,
    /// A line of a file.
    Line,
}

/// A source file, a function or a line.
#[derive(Clone, Debug)]
pub struct SourcePlace {
    /// What it is.
    pub kind: PlaceKind,
    /// The file's path.
    pub file: StrId,
    /// The line; of a function its first line in a stack, of a file 0.
    pub line: u32,
    /// The functions of the line in order of occurrence, or the function itself. Empty for a file.
    pub functions: Vec<StrId>,
    /// The blocks whose call stack goes through the place.
    pub total: Sums,
    /// The blocks whose innermost frame of the user's code is at this place.
    pub own: Sums,
    /// The number of the stack that was added last.
    stamp: u32,
}

/// All places with blocks.
#[derive(Clone, Debug, Default)]
pub struct SourceSums {
    /// Files, functions and lines in order of occurrence.
    pub all: Vec<SourcePlace>,
    /// `requested_bytes` at the peak.
    pub whole: u64,
    /// Blocks with no call stack, with that of their free, and with one whose call site has no
    /// line. No line has them among its own.
    pub without: [Sums; 3],
}

/// Whether a frame names a line of source: in a library, the line is an offset in bytes.
pub fn has_line(snapshot: &Snapshot, frame: Frame) -> bool {
    let file = snapshot.text(frame.file);
    let name = file_name(&file);
    frame.line > 0 && !matches!(name, "" | "??") && !is_library(name)
}

impl SourceSums {
    /// Sums the blocks of a filter by file, function and line. Without the framework, only the
    /// user's code counts, and the call sites of stacks that have none of it.
    pub async fn new(
        at: Target<'_>,
        filter: &Filter<'_>,
        hide_framework: bool,
        budget: &mut Budget,
    ) -> Self {
        let snapshot = at.snapshot();
        let sums = by_stack(at, filter, budget).await;
        let peak = slot_of(at.trace().requested_band.peak_event);
        let mut places = Self { whole: at.trace().requested.at(peak), ..Self::default() };
        let mut index = Index::default();
        for (number, ((stack, is_of_free, no_stack), sums)) in (1..).zip(&sums) {
            let frames = snapshot.stacks.frames(*stack);
            budget.charge(8 + 4 * frames.len() as u64).await;
            if no_stack.is_some() || *is_of_free {
                places.without[usize::from(*is_of_free)].add(sums);
                continue;
            }
            let site = at.entry.sites.get(*stack).frame;
            let mut own = frames.iter().find(|&&id| site == Some(snapshot.frame(id))).copied();
            if own.is_none_or(|id| !index.has_line(snapshot, id)) {
                places.without[2].add(sums);
            }
            for &id in frames {
                // The innermost of equal frames.
                let is_own = own.take_if(|own| *own == id).is_some();
                let is_hidden = hide_framework && !is_own && index.is_framework(snapshot, id);
                if is_hidden || !index.has_line(snapshot, id) {
                    continue;
                }
                for place in index.places(&mut places.all, snapshot.frame(id)) {
                    let found = &mut places.all[place];
                    if found.stamp != number {
                        found.stamp = number;
                        found.total.add(sums);
                    }
                    if is_own {
                        found.own.add(sums);
                    }
                }
            }
        }
        places
    }

    /// The places of a kind, in one file or in all.
    pub fn of_kind(
        &self,
        kind: PlaceKind,
        file: Option<StrId>,
    ) -> impl Iterator<Item = &SourcePlace> {
        let is_wanted = move |place: &&SourcePlace| {
            file.is_none_or(|file| place.file == file) && place.kind == kind
        };
        self.all.iter().filter(is_wanted)
    }
}

/// Where the places of a frame are.
#[derive(Default)]
struct Index {
    /// By file, line and function. A file has line 0 and no function, a function has line 0.
    places: FxHashMap<(StrId, u32, Option<StrId>), usize>,
    /// Whether a function of a file is the framework's.
    framework: FxHashMap<(StrId, StrId), bool>,
    /// Whether lines of a file are lines of source.
    lines: FxHashMap<StrId, bool>,
}

impl Index {
    fn is_framework(&mut self, snapshot: &Snapshot, id: FrameId) -> bool {
        let frame = snapshot.frame(id);
        let known = self.framework.entry((frame.name, frame.file));
        *known.or_insert_with(|| text::is_framework(snapshot, frame))
    }

    fn has_line(&mut self, snapshot: &Snapshot, id: FrameId) -> bool {
        let frame = snapshot.frame(id);
        let any = Frame { line: 1, ..frame };
        frame.line > 0 && *self.lines.entry(frame.file).or_insert_with(|| has_line(snapshot, any))
    }

    /// The file, the function and the line of a frame.
    fn places(&mut self, all: &mut Vec<SourcePlace>, frame: Frame) -> [usize; 3] {
        let Frame { name, file, line, .. } = frame;
        let keys = [
            (PlaceKind::File, 0, None),
            (PlaceKind::Function, 0, Some(name)),
            (PlaceKind::Line, line, None),
        ];
        keys.map(|(kind, key, function)| {
            let next = all.len();
            let place = *self.places.entry((file, key, function)).or_insert(next);
            if place == next {
                let (functions, total, own) = (Vec::new(), Sums::default(), Sums::default());
                all.push(SourcePlace { kind, file, line: key, functions, total, own, stamp: 0 });
            }
            let found = &mut all[place];
            if kind == PlaceKind::Function && (found.line == 0 || line < found.line) {
                found.line = line;
            }
            if kind != PlaceKind::File && !found.functions.contains(&name) {
                found.functions.push(name);
            }
            place
        })
    }
}
