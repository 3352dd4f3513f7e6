//! All integration tests, in one binary: they share how files are read.

mod categories;
mod findings;
mod findings_allocator;
mod findings_allocator_recorded;
mod findings_blind;
mod findings_by_hand;
mod findings_held;
mod findings_oom;
mod findings_pinned;
mod findings_ranks;
mod ledger;
mod memory;
mod phases;
mod rank_matrix;
mod slices;
mod step_phases;
mod uses;
mod what_if;
mod what_if_host;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vramscope_inference::{
    Categories, Evidence, Finding, FindingKind, Passes, Phase, Rules, Steps, findings,
};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Sites, Trace};

/// The first device of a snapshot, with what its findings rest on.
struct Device {
    snapshot: Snapshot,
    trace: Trace,
    sites: Sites,
    carving: Carving,
    categories: Categories,
    steps: Option<Steps>,
    passes: Passes,
}

impl Device {
    fn new(snapshot: Snapshot) -> Self {
        let trace = Trace::all(&snapshot).into_iter().next().expect("a device");
        Self::of(snapshot, trace)
    }

    /// Pinned host memory, the last device of a snapshot.
    fn host(snapshot: Snapshot) -> Self {
        let trace = Trace::all(&snapshot).into_iter().next_back().expect("a device");
        Self::of(snapshot, trace)
    }

    fn of(snapshot: Snapshot, trace: Trace) -> Self {
        let categories =
            now(async |budget| Categories::new(&snapshot, &trace, &Rules::default(), budget).await);
        let steps =
            now(async |budget| Steps::find(&snapshot, &trace, categories.phases(), budget).await);
        let passes = now(async |budget| {
            Passes::find(&snapshot, &trace, &categories, steps.as_ref(), budget).await
        });
        Self {
            sites: Sites::new(&snapshot),
            carving: now(async |budget| Carving::new(&snapshot, &trace, budget).await),
            steps,
            passes,
            categories,
            trace,
            snapshot,
        }
    }

    fn evidence(&self) -> Evidence<'_> {
        Evidence {
            snapshot: &self.snapshot,
            trace: &self.trace,
            sites: &self.sites,
            carving: &self.carving,
            categories: &self.categories,
            steps: self.steps.as_ref(),
            passes: &self.passes,
            uses: None,
        }
    }

    fn findings(&self) -> Vec<Finding> {
        now(async |budget| findings(self.evidence(), budget).await)
    }

    fn of_kind(&self, kind: FindingKind) -> Vec<Finding> {
        self.findings().into_iter().filter(|finding| finding.kind() == kind).collect()
    }
}

/// Frames of an allocation in a phase, innermost first, in files that the rules know: at a line of
/// `model.py` or `train.py`.
fn frames_in(phase: Phase, line: u32) -> Value {
    match phase {
        Phase::Forward => json!([
            {"name": "forward", "filename": "model.py", "line": line},
            {"name": "_call_impl", "filename": "/lib/site-packages/torch/nn/modules/module.py",
             "line": 1},
            {"name": "train", "filename": "train.py", "line": 10},
        ]),
        Phase::Backward => json!([]),
        _ => json!([{"name": "train", "filename": "train.py", "line": line}]),
    }
}

/// The folder with the files of tests.
fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

/// Reads a snapshot: a pickle or JSON, also compressed.
fn parse(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a snapshot").remove(0).snapshot
}

/// The bytes of a file, whose path may be relative to `test_data`.
fn bytes_of(path: impl AsRef<Path>) -> Vec<u8> {
    let path = test_data().join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The snapshot in a file, whose path may be relative to `test_data`.
fn load(path: impl AsRef<Path>) -> Snapshot {
    parse(&bytes_of(path))
}
