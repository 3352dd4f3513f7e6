//! The index of a run: a card of each device of each file, as lines of JSON (docs/fleet.md).
//!
//! A card has what the overview of ranks shows and what ranks are compared by, in a few kilobytes.
//! So a run of 10,000 ranks is shown and compared without any of its snapshots. The page's worker
//! reads cards. It reads them as a small tree of JSON: derived readers take several times the code.

mod json;
mod make;
mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use crate::findings::FindingRecord;
use serde::{Deserialize, Serialize};
use vramscope_analysis::{Category, FindingKind};

/// The schema's name and version, in the first line.
pub const SCHEMA: &str = "vramscope.index/1";

/// The end of the name of an index.
pub const EXTENSION: &str = ".vramscope";

/// The error of a card of a file in which nothing was allocated.
pub const NO_DEVICE: &str = "no memory was allocated on any device";

/// The columns of a card's curve.
pub const COLUMNS: usize = 64;

/// The value of a column of a curve at the full height: the peak of reserved bytes, or of requested
/// bytes if that is higher.
pub const FULL_HEIGHT: u64 = 1000;

/// The most findings that a card has with their texts.
pub const MAX_FINDINGS: usize = 8;

/// The most steps that a card has.
pub const MAX_STEPS: usize = 64;

/// One device of one file, or a file that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Card {
    /// The file's path, followed by `#name` if the file contains several snapshots.
    pub path: String,
    /// Stored size of the file in bytes.
    pub bytes: u64,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The iteration in the path; null if there is none.
    pub iteration: Option<u64>,
    /// The device's ordinal; null if the file could not be read.
    pub device: Option<u32>,
    /// Why the file could not be read; null if it was read.
    pub error: Option<String>,
    /// The number of trace events.
    pub events: u64,
    /// The peaks of the four bands, in the order of [`BandKind::ALL`](crate::peak::BandKind::ALL).
    pub peaks: Vec<i64>,
    /// The first event after which each band peaks; -1 is the state before the window.
    pub peak_events: Vec<i64>,
    /// 1 for each band that is an estimate, else 0.
    pub estimates: Vec<u64>,
    /// `requested_bytes` after the last event.
    pub end: i64,
    /// Free bytes that the allocator caches at the peak of `reserved_bytes`: reserved minus active.
    pub free: u64,
    /// Bytes of the largest free piece then.
    pub largest_free: u64,
    /// Free bytes that the allocator caches after the last event.
    pub end_free: u64,
    /// Bytes of the largest free piece then.
    pub end_largest_free: u64,
    /// What PyTorch could have on the device; null if the file does not show it.
    pub capacity: Option<u64>,
    /// The categories that are live at the peak of `requested_bytes`, most bytes first.
    pub categories: Vec<Category>,
    /// The bytes of each of these.
    pub category_bytes: Vec<u64>,
    /// The call sites with the most bytes at that peak, by index in the sites of the index.
    pub sites: Vec<u64>,
    /// The bytes of each of these.
    pub site_bytes: Vec<u64>,
    /// The event after the last whole step, or the last event where nothing shows steps; -1 is the
    /// state before the window. Then only what is kept is live.
    pub kept_event: i64,
    /// `requested_bytes` after that event.
    pub kept: u64,
    /// The call sites with the most bytes after that event, by index in the sites of the index.
    pub kept_sites: Vec<u64>,
    /// The bytes of each of these.
    pub kept_site_bytes: Vec<u64>,
    /// The call stacks with the most bytes at the peak of `requested_bytes`, by index in the stacks
    /// of the index.
    pub stacks: Vec<u64>,
    /// The bytes of each of these.
    pub stack_bytes: Vec<u64>,
    /// The category with most of these bytes, by index in [`Category::ALL`].
    pub stack_categories: Vec<u64>,
    /// The places in `stacks` of those whose call site a finding about growth or held memory names.
    pub told: Vec<u64>,
    /// The events of allocations that failed.
    pub oom_events: Vec<u64>,
    /// The bytes that each of these requested.
    pub oom_requests: Vec<u64>,
    /// The kinds of all findings, by severity, then bytes.
    pub kinds: Vec<FindingKind>,
    /// The bytes of each of these.
    pub kind_bytes: Vec<u64>,
    /// The worst findings.
    pub findings: Vec<CardFinding>,
    /// The most `requested_bytes` in equal parts of the window, in units of the full height divided
    /// by [`FULL_HEIGHT`].
    pub curve: Vec<u64>,
    /// The number of the first step in `step_peaks`, from 0.
    pub first_step: u64,
    /// The peak of `requested_bytes` in each of the last whole steps.
    pub step_peaks: Vec<u64>,
    /// `requested_bytes` after each of these steps.
    pub step_floors: Vec<u64>,
    /// Call sites that no card before this one names, in the order of their indices.
    pub new_sites: Vec<String>,
    /// The hashes of call stacks that no card before this one names, in the order of their indices.
    pub new_stacks: Vec<u64>,
    /// The call site of each of these, by index.
    pub new_stack_sites: Vec<u64>,
}

/// A finding of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardFinding {
    /// The record, [in brief](FindingRecord::brief).
    #[serde(flatten)]
    pub record: FindingRecord,
    /// The finding in one sentence, without its rank.
    pub headline: String,
    /// The step and phase in words; empty if neither is known.
    pub place: String,
}
