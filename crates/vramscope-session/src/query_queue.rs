//! The queue of queries: answers in slices, in turns.
//!
//! A short query is answered before tiles, except before those of the first picture. A query that
//! takes more slices than [`SLICES_BEFORE_TILES`] continues behind the tiles, where long queries
//! start. Nothing here looks at a clock.

use crate::derived::DerivedBuilder;
use crate::messages::views::{Query, QueryClass};
use crate::messages::{DeviceRef, Failure, Response};
use crate::queries::{Answering, Queries, Step};
use crate::scheduler::Slice;
use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::Arc;
use vramscope_report::LoadedFile;

/// Slices of a query that come before tiles.
const SLICES_BEFORE_TILES: u32 = 8;

/// A query that waits, with the work done for it.
struct Pending {
    id: u32,
    device: DeviceRef,
    query: Query,
    answering: Answering,
    slices: u32,
}

/// All queries that wait.
#[derive(Default)]
pub(crate) struct QueryQueue {
    before_tiles: VecDeque<Pending>,
    /// Short queries that took too many slices, then long ones.
    behind: VecDeque<Pending>,
}

/// What queries are answered from.
pub(crate) struct Sources<'a> {
    pub(crate) file: Option<&'a Arc<LoadedFile>>,
    pub(crate) derived: &'a mut DerivedBuilder,
    pub(crate) queries: &'a mut Queries,
}

impl QueryQueue {
    /// Adds a query. It cancels older ones of its kind where its spec says so.
    pub(crate) fn post(&mut self, id: u32, device: DeviceRef, query: Query) {
        let spec = query.spec();
        if spec.replaces {
            let kind = discriminant(&query);
            for queue in [&mut self.before_tiles, &mut self.behind] {
                queue.retain(|waiting| discriminant(&waiting.query) != kind);
            }
        }
        let queue = match spec.class {
            QueryClass::Short => &mut self.before_tiles,
            QueryClass::Long => &mut self.behind,
        };
        queue.push_back(Pending { id, device, query, answering: Answering::default(), slices: 0 });
    }

    /// Runs a slice of a query that comes before tiles, each in its turn; `None` without one.
    pub(crate) fn before_tiles(&mut self, sources: Sources<'_>) -> Option<Slice> {
        let mut pending = self.before_tiles.pop_front()?;
        let slice = pending.slice(sources);
        if let Slice::Working = slice {
            pending.slices += 1;
            if pending.slices < SLICES_BEFORE_TILES {
                self.before_tiles.push_back(pending);
            } else {
                let is_long = |waiting: &Pending| waiting.query.spec().class == QueryClass::Long;
                let first_long = self.behind.iter().position(is_long);
                self.behind.insert(first_long.unwrap_or(self.behind.len()), pending);
            }
        }
        Some(slice)
    }

    /// Runs a slice of the first query behind the tiles; `None` without one.
    pub(crate) fn behind_tiles(&mut self, sources: Sources<'_>) -> Option<Slice> {
        let slice = self.behind.front_mut()?.slice(sources);
        if !matches!(slice, Slice::Working) {
            self.behind.pop_front();
        }
        Some(slice)
    }
}

impl Pending {
    fn slice(&mut self, sources: Sources<'_>) -> Slice {
        let failed = |message: &str| {
            let failure =
                Failure { id: Some(self.id), message: message.to_owned(), hint: None, file: None };
            Slice::answer(Response::Failed(failure))
        };
        let Some(file) = sources.file else { return failed("The file is not loaded.") };
        if !sources.derived.is_ready(file, self.device, self.query.spec().needs) {
            return Slice::Working;
        }
        let queries = sources.queries;
        match queries.answer(file, self.device, &self.query, &mut self.answering) {
            Step::Working => Slice::Working,
            Step::Done(answer) => Slice::answer(Response::View { id: self.id, answer }),
            Step::NoSuchDevice => failed("The file has no such device."),
        }
    }
}
