//! Reports about a snapshot: values with documented JSON forms (`vramscope schema`), labels,
//! finding texts and exports.
//!
//! The command line prints these reports, and the page shows the same values. A report is a
//! function from a [`Target`], one device of a [`LoadedFile`], to a serializable value. This crate
//! does not depend on the page, the protocol or the scheduler.
//!
//! ```
//! use vramscope_report::{FileReader, peak};
//!
//! let json = br#"{"segments": [],
//!     "device_traces": [[{"action": "alloc", "addr": 4096, "size": 100}]]}"#;
//! let mut reader = FileReader::new("rank0.json", json.len() as u64);
//! reader.feed(json).expect("JSON of a snapshot");
//! let file = reader.finish().expect("a whole snapshot");
//! let target = file.target(0, 0).expect("device 0");
//! assert_eq!(peak::peak(target, peak::BandKind::Requested, None).total, 100);
//! ```

#![warn(clippy::too_many_lines)]

pub mod annotate;
pub mod backward;
mod band;
mod block_context;
pub mod blocks;
pub mod capacity;
pub mod card;
pub mod changes;
pub mod check;
pub mod code;
pub mod columns;
pub mod copy;
mod derived;
pub mod diagnose;
pub mod diagnostic;
pub mod diff;
pub mod disambiguate;
pub mod dry;
pub mod events;
pub mod explain;
pub mod export;
pub mod findings;
pub mod flame;
mod frames;
mod groups;
pub mod holders;
pub mod html;
pub mod index;
pub mod info;
pub mod ledger;
pub mod lens;
mod levers;
pub mod lines;
mod loaded_file;
pub mod markdown;
pub mod matrix;
pub mod meaning;
pub mod modules;
pub mod moments;
mod notes;
pub mod one_gpu;
pub mod optimizations;
mod part;
pub mod peak;
pub mod phases;
mod places;
pub mod proof;
mod quantity;
mod rank_of;
pub mod ranks;
pub mod record;
pub mod redact;
mod reference;
pub mod search;
pub mod segments;
pub mod series;
pub mod serving;
pub mod shapes;
mod shares;
pub mod show;
pub mod side;
pub mod sidecar;
mod simulated;
pub mod state;
pub mod steps;
pub mod summary;
mod target;
pub mod text;
pub mod uses;
pub mod verdict;
pub mod what_if;

pub use block_context::{BlockContext, SiteSum};
pub use derived::Derived;
use frames::stack;
pub use frames::{
    FrameRecord, StackTable, block_site, frame, frames, freed_by, owned_frames, row_site, site,
};
pub use groups::{Group, GroupKind, Groups};
pub use levers::{
    LeverTable, NoLever, PlanRecord, PlannedSet, SettingNeeds, known_limits, lever_question,
    lever_table, setting_needs,
};
pub use loaded_file::{FileReader, LoadedFile, SnapshotEntry, piece_len};
pub use notes::{BlockNotes, notes};
pub use part::part;
pub use places::BlockPlaces;
pub use quantity::Quantity;
pub use rank_of::{iteration_of, rank_of, run_folder_of};
pub use record::ProgramRecord;
pub use reference::{BlockReference, Entry, NoReference};
pub use shares::{CategoryShare, by_category, row_category};
pub use sidecar::{Sidecar, TensorRecord};
pub use target::{Target, event_of, exactness, slot_after, slot_of, time_of};
pub use vramscope_inference::{
    Category, ChangeKind, Cost, Covers, EditRecord, FindingId, FindingKind, Lasts, Lever,
    LeverBasis, LeverPlace, Look, Phase, Phrase, Predicted, Recipe, RuleError, Rules, Sentence,
    Severity, Simulated, Widths, lower_first, plain, site_filter,
};
pub use vramscope_snapshot::{DeviceKind, HOST, device_name};
pub use vramscope_trace::slicing::now;
