//! `vramscope peak --by pool`: what each capture of a CUDA graph added to its pool, and what an
//! inference engine holds: weights, KV cache, graphs, workspaces, activations.

use crate::derived::Derived;
use crate::serving::{self, ServingRecord};
use crate::shapes::{BlockShape, BlockShapes};
use crate::target::Target;
use crate::text::{self, label_of};
use crate::what_if::Options;
use crate::{event_of, row_site};
use serde::Serialize;
use vramscope_inference::{Ledger, LedgerSum, MostAtOnce, OneMore, OnePool, ToldBy};
use vramscope_trace::slicing::{Budget, now};
use vramscope_units::{Bytes, grouped};

/// The captures of CUDA graphs, their pools, and the memory of an inference engine by its use.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedgerRecord {
    /// The captures, in order; with `--limit`, the first.
    pub captures: Vec<CaptureRecord>,
    /// The number of captures left out by `--limit`.
    pub captures_omitted: usize,
    /// Their pools at the end, in the order in which they appear.
    pub pools: Vec<GraphPoolRecord>,
    /// What the captures after the first added; null with fewer than three captures.
    pub one_more: Option<OneMoreRecord>,
    /// All captures in one pool, as a replay of the requests shows it; null if they have one pool,
    /// or the replay cannot tell.
    pub one_pool: Option<OnePoolRecord>,
    /// KV caches at the peak of `reserved_bytes`, most bytes first.
    pub caches: Vec<CacheRecord>,
    /// Workspaces of libraries at the peak of `reserved_bytes`, by stream, most bytes first.
    pub workspaces: Vec<WorkspaceRecord>,
    /// `reserved_bytes` by use: at its peak, and at the end.
    pub sums: Vec<SumRecord>,
    /// The most memory of activations at once, outside of pools of graphs, before the KV cache: the
    /// profile run. Null if that is not in the window, or there is no cache.
    pub profile: Option<MostRecord>,
    /// The same after it, or over the whole window without a cache.
    pub work: MostRecord,
    /// The KV cache that the engine can have on the recorded GPU, as `what-if` says it; null where
    /// no file beside the snapshot names the GPU, and without an engine's cache.
    pub serving: Option<ServingRecord>,
    /// What follows, in sentences.
    pub text: Vec<String>,
}

/// A capture of a CUDA graph, or a warm-up in its pool. Bytes are block sizes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureRecord {
    /// The memory pool.
    pub pool: Option<[u64; 2]>,
    /// `capture`, or `warm_up`: a first run in the pool without a capture, as a call stack tells.
    pub kind: &'static str,
    /// What tells where it begins: `pool` (the first in its pool), `stack` (a call stack of
    /// `torch.cuda.graph` or of `cudagraph_trees.py`), `others` (allocations outside of the pool
    /// before it) or `repetition` (call stacks repeat, with other sizes).
    pub told_by: &'static str,
    /// The event of its first allocation.
    pub begin: i64,
    /// The last event before the next allocation or reservation.
    pub end: i64,
    /// The number of its allocations.
    pub allocations: u32,
    /// Bytes that the pool reserved for it.
    pub added: Bytes,
    /// The most bytes of its blocks at once.
    pub used: Bytes,
    /// The most bytes of its blocks at once in memory that the pool had before.
    pub reused: Bytes,
    /// Bytes of its blocks that are live after it.
    pub kept: Bytes,
    /// The shape of the largest block that it keeps, as recorded or as far as sizes tell; absent if
    /// nothing tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<BlockShape>,
    /// Bytes that the pool has reserved after it.
    pub reserved: Bytes,
    /// Bytes of all live blocks of the pool after it.
    pub live: Bytes,
    /// The innermost frame of the program that its allocations share; null without stacks.
    pub site: Option<String>,
}

/// A pool of CUDA graphs at the end of the window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphPoolRecord {
    /// The memory pool.
    pub pool: Option<[u64; 2]>,
    /// The number of its captures.
    pub captures: u32,
    /// Its reserved bytes.
    pub reserved: Bytes,
    /// Bytes of its live blocks.
    pub live: Bytes,
    /// Reserved bytes without a live block. Replays use them, and nothing else can.
    pub idle: Bytes,
}

/// What the captures after the first added, each: least, median and most.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneMoreRecord {
    /// The number of these captures.
    pub captures: u32,
    /// The fewest bytes that a pool reserved for one.
    pub added_least: Bytes,
    /// The median.
    pub added_median: Bytes,
    /// The most.
    pub added_most: Bytes,
    /// The bytes that a pool reserved for the last.
    pub added_last: Bytes,
    /// The fewest bytes that one kept.
    pub kept_least: Bytes,
    /// The median.
    pub kept_median: Bytes,
    /// The most.
    pub kept_most: Bytes,
}

/// The requests of several pools in one of them, replayed in their order.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnePoolRecord {
    /// The number of pools.
    pub pools: usize,
    /// Bytes that they reserve at the end.
    pub reserved: Bytes,
    /// Bytes that one pool reserves then.
    pub one_reserved: Bytes,
    /// Bytes that one pool reserves if the captures that used most come first, and nothing that a
    /// capture keeps is freed before the last.
    pub largest_first: Bytes,
    /// The peak of `reserved_bytes`.
    pub peak: Bytes,
    /// The same with one pool.
    pub one_peak: Bytes,
    /// `simulated`, or `estimate` if it depends on addresses that only the driver knows: then the
    /// figures are the larger ones of two orders of addresses.
    pub basis: &'static str,
}

/// Blocks of a cache that one call stack allocated.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheRecord {
    /// The call site.
    pub site: String,
    /// The number of blocks.
    pub blocks: u32,
    /// Their bytes.
    pub bytes: Bytes,
    /// The size of the smallest.
    pub smallest: Bytes,
    /// The size of the largest.
    pub largest: Bytes,
    /// The event that allocated the first; null if that was before the window.
    pub first: Option<u32>,
    /// The event that allocated the last; null if that was before the window.
    pub last: Option<u32>,
}

/// Workspaces of libraries on one stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceRecord {
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// The number of blocks.
    pub blocks: u32,
    /// Their bytes.
    pub bytes: Bytes,
    /// Those of them in pools of graphs.
    pub in_graph_pools: Bytes,
}

/// `reserved_bytes` of one moment by use. The parts add up to it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SumRecord {
    /// `peak` or `end`.
    pub at: &'static str,
    /// The event after which it holds; -1 is the state before the window.
    pub event: i64,
    /// All reserved bytes.
    pub reserved: Bytes,
    /// Parameters and buffers.
    pub weights: Bytes,
    /// KV cache, and similar stores that inference keeps.
    pub caches: Bytes,
    /// Pools of CUDA graphs, live or not, without workspaces in them.
    pub graphs: Bytes,
    /// Workspaces of libraries, in any pool.
    pub workspaces: Bytes,
    /// Activations, temporaries and inputs outside of pools of graphs.
    pub activations: Bytes,
    /// All other blocks outside of pools of graphs.
    pub other: Bytes,
    /// Free memory outside of pools of graphs, which PyTorch keeps for later requests.
    pub free: Bytes,
}

impl SumRecord {
    /// The parts with their names, and their sum.
    pub fn rows(&self) -> [(&'static str, Bytes); 8] {
        [
            ("weights", self.weights),
            ("KV cache", self.caches),
            ("CUDA graphs", self.graphs),
            ("workspaces", self.workspaces),
            ("activations", self.activations),
            ("other blocks", self.other),
            ("free", self.free),
            ("reserved", self.reserved),
        ]
    }
}

/// The most bytes of blocks at once.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MostRecord {
    /// Bytes, with rounding.
    pub bytes: Bytes,
    /// The first event after which they are live; -1 is the state before the window.
    pub event: i64,
}

/// The ledger of a device. `None` without a capture and without a KV cache.
pub fn ledger(target: Target<'_>, limit: Option<usize>) -> Option<LedgerRecord> {
    now(async |budget| record(target, limit, budget).await)
}

/// [`ledger`] in slices.
pub async fn record(
    target: Target<'_>,
    limit: Option<usize>,
    budget: &mut Budget,
) -> Option<LedgerRecord> {
    let entry = target.entry;
    for derived in [Derived::Carving, Derived::Categories, Derived::Steps, Derived::Dims] {
        entry.derive(derived, target.index, budget).await;
    }
    let mut ledger = Ledger::of(entry.evidence(target.index), budget).await?;
    if ledger.held_pools().len() > 1 {
        entry.derive(Derived::WhatIf, target.index, budget).await;
        if let Some(model) = entry.what_if(target.index) {
            ledger.replay_in_one_pool(model, budget).await;
        }
    }
    let shown = limit.unwrap_or(usize::MAX).min(ledger.captures.len());
    let mut shapes = BlockShapes::new(target);
    budget.charge(16 * shown as u64).await;
    Some(LedgerRecord {
        captures: ledger.captures[..shown]
            .iter()
            .map(|capture| CaptureRecord {
                pool: text::pool(target.snapshot(), capture.pool),
                kind: if capture.is_warm_up { "warm_up" } else { "capture" },
                told_by: told_by(capture.told_by),
                begin: capture.events.0.0.into(),
                end: capture.events.1.0.into(),
                allocations: capture.allocations,
                added: capture.added,
                used: capture.used,
                reused: capture.reused,
                kept: capture.kept,
                shape: shapes.of_all(capture.largest_kept),
                reserved: capture.reserved,
                live: capture.live,
                site: capture
                    .at
                    .map(|frame| label_of(target.snapshot(), target.snapshot().frame(frame))),
            })
            .collect(),
        captures_omitted: ledger.captures.len() - shown,
        pools: ledger
            .pools
            .iter()
            .map(|pool| GraphPoolRecord {
                pool: text::pool(target.snapshot(), pool.pool),
                captures: pool.captures,
                reserved: pool.reserved,
                live: pool.live,
                idle: Bytes(pool.reserved.0.saturating_sub(pool.live.0)),
            })
            .collect(),
        one_more: ledger.one_more.map(one_more),
        one_pool: ledger.one_pool.map(one_pool),
        caches: ledger
            .caches
            .iter()
            .map(|of| CacheRecord {
                site: row_site(entry, of.stack, None),
                blocks: of.blocks,
                bytes: of.bytes,
                smallest: of.range.0,
                largest: of.range.1,
                first: of.first.map(|event| event.0),
                last: of.last.map(|event| event.0),
            })
            .collect(),
        workspaces: ledger
            .workspaces
            .iter()
            .map(|of| WorkspaceRecord {
                stream: target.snapshot().stream(of.stream),
                blocks: of.blocks,
                bytes: of.bytes,
                in_graph_pools: of.in_graphs,
            })
            .collect(),
        sums: vec![sum("peak", ledger.peak), sum("end", ledger.end)],
        profile: ledger.profile.map(most),
        work: most(ledger.work),
        serving: serving::record(target, &Options::default(), budget).await,
        text: sentences(&ledger),
    })
}

fn told_by(by: ToldBy) -> &'static str {
    match by {
        ToldBy::Pool => "pool",
        ToldBy::Stack => "stack",
        ToldBy::Others => "others",
        ToldBy::Repetition => "repetition",
    }
}

fn one_more(of: OneMore) -> OneMoreRecord {
    let OneMore { captures, added, kept, last } = of;
    OneMoreRecord {
        captures,
        added_least: added[0],
        added_median: added[1],
        added_most: added[2],
        added_last: last,
        kept_least: kept[0],
        kept_median: kept[1],
        kept_most: kept[2],
    }
}

fn one_pool(of: OnePool) -> OnePoolRecord {
    OnePoolRecord {
        pools: of.pools,
        reserved: of.reserved,
        one_reserved: of.one,
        largest_first: of.largest_first,
        peak: of.peak,
        one_peak: of.peak_with_one,
        basis: if of.is_estimate { "estimate" } else { "simulated" },
    }
}

fn sum(at: &'static str, of: LedgerSum) -> SumRecord {
    SumRecord {
        at,
        event: event_of(of.slot),
        reserved: of.reserved,
        weights: of.weights,
        caches: of.caches,
        graphs: of.graphs,
        workspaces: of.workspaces,
        activations: of.activations,
        other: of.other,
        free: of.free,
    }
}

fn most(of: MostAtOnce) -> MostRecord {
    MostRecord { bytes: of.bytes, event: of.event.map_or(-1, |event| event.0.into()) }
}

/// `1 capture`, `12 captures`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// What the ledger shows, one sentence each.
fn sentences(ledger: &Ledger) -> Vec<String> {
    let mut text = Vec::new();
    let held = ledger.pools.iter().filter(|pool| pool.reserved.0 > 0);
    let (reserved, live) =
        held.clone().fold((0, 0), |sum, pool| (sum.0 + pool.reserved.0, sum.1 + pool.live.0));
    if reserved > 0 {
        text.push(format!(
            "At the end {} of CUDA graphs {} {}, of which {} are idle between replays.",
            counted(held.clone().count() as u64, "pool"),
            if held.count() == 1 { "reserves" } else { "reserve" },
            Bytes(reserved),
            Bytes(reserved.saturating_sub(live)),
        ));
    }
    if let Some(more) = &ledger.one_more {
        let later = counted(more.captures.into(), "capture");
        let kept = format!("{} (median {})", range(more.kept[0], more.kept[2]), more.kept[1]);
        text.push(if more.added[2].0 == 0 {
            format!("The {later} after the first reserved nothing more, and kept {kept} each.")
        } else {
            format!(
                "The {later} after the first reserved {} more each (median {}, the last {}), and \
                 kept {kept}.",
                range(more.added[0], more.added[2]),
                more.added[1],
                more.last,
            )
        });
    }
    if let Some(of) = &ledger.one_pool {
        let first = if of.largest_first == of.one {
            String::new()
        } else {
            format!(" With the largest captured first it would reserve {}.", of.largest_first)
        };
        text.push(format!(
            "One pool for all would reserve {}{} in place of {}: at most {} would be reserved in \
             place of {} (the requests were replayed).{first}",
            if of.is_estimate { "about " } else { "" },
            of.one,
            of.reserved,
            of.peak_with_one,
            of.peak,
        ));
    }
    let workspaces: u64 = ledger.workspaces.iter().map(|of| of.bytes.0).sum();
    if ledger.workspaces.len() > 1 {
        text.push(format!(
            "At the peak {} of workspaces are live on {}: libraries keep one for each stream.",
            Bytes(workspaces),
            counted(ledger.workspaces.len() as u64, "stream"),
        ));
    }
    if let Some(profile) = &ledger.profile {
        text.push(format!(
            "Before the KV cache, activations had at most {}; after it {}.",
            profile.bytes, ledger.work.bytes,
        ));
    }
    text
}

/// `2.00 MiB`, or `2.00 MiB to 68.00 MiB`.
fn range(least: Bytes, most: Bytes) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}
