//! The source files of the served snapshots.
//!
//! A file is only handed out if a call stack of the snapshot names it, and if it lies in one of the
//! folders that the user names as source.

use crate::memory;
use crate::read::{Limits, read_opened};
use crate::sources::Sources;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A version of a snapshot: its number on the shelf, and the text that changes with it.
type Version = (usize, String);

/// The version of a snapshot, and the source files that its call stacks name.
type Named = (String, Arc<BTreeSet<String>>);

/// The folders of source, and the paths that snapshots name.
pub(crate) struct Code {
    sources: Sources,
    /// By the number of the snapshot. A new version replaces the old one.
    named: Mutex<BTreeMap<usize, Named>>,
}

/// A source file, or why it is refused.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Found {
        /// The path of the file.
        found: String,
        text: String,
        /// When the file was changed last, in milliseconds since 1970; null if that is not known.
        modified: Option<i64>,
    },
    Refused {
        /// Why, as a sentence.
        refused: String,
    },
}

impl Code {
    pub(crate) fn new(sources: Sources) -> Self {
        Self { sources, named: Mutex::default() }
    }

    /// Whether no folder of source is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The source file of a path that call stacks of a snapshot name, which is open. `None` if they
    /// do not name it, or if no folder has it.
    pub(crate) fn source(
        &self,
        version: Version,
        snapshot: (&Path, File),
        path: &str,
    ) -> Option<Answer> {
        if self.is_empty() || !self.named(version, snapshot).contains(path) {
            return None;
        }
        match self.sources.read(path) {
            Ok(found) => found.map(|file| Answer::Found {
                found: file.path,
                text: file.text,
                modified: file.modified_us.map(|us| us / 1000),
            }),
            Err(refused) => Some(Answer::Refused { refused }),
        }
    }

    /// The source files that call stacks of a snapshot name; none if it cannot be read.
    fn named(
        &self,
        (number, version): Version,
        (path, file): (&Path, File),
    ) -> Arc<BTreeSet<String>> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = named.get(&number).filter(|(of, _)| *of == version) {
            return known.clone();
        }
        // Without its events, a snapshot takes little memory.
        let limits = Limits { events: Some(0..0), memory: memory::limit(None, 1) };
        let (_, file) = read_opened(path, Ok(file), &limits, |_| {});
        let files = Arc::new(file.map(|file| file.source_files()).unwrap_or_default());
        named.insert(number, (version, files.clone()));
        files
    }
}
