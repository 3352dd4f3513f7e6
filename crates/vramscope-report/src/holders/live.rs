//! `vramscope.holders()`: what holds blocks of a living process.

use super::report::{drops, text};
use super::{DropRecord, Holder, HolderKind, holder};
use crate::sidecar::holders::Holders;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fmt::Write as _;
use vramscope_units::{Addr, Bytes, grouped};

/// What holds blocks of a process, which Python shows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveHolders {
    /// The bytes of the blocks.
    pub bytes: u64,
    /// The blocks, the largest first.
    pub blocks: Vec<LiveBlock>,
    /// What dropping references frees, as a tree: a row is followed by the rows that are within it.
    pub drops: Vec<DropRecord>,
    /// False where not all references were read.
    pub complete: bool,
    /// False where autograd graphs and gradients were not read.
    pub graph: bool,
    /// What limits the answer, in sentences.
    pub limits: Vec<String>,
    /// The answer in words.
    pub text: String,
}

/// A block and what holds it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveBlock {
    /// The device's ordinal.
    pub device: u32,
    /// The address.
    pub address: Addr,
    /// What holds it.
    #[serde(flatten)]
    pub holder: Holder,
}

/// What holds blocks, by what the walk of this process found (SIDECAR.md) and the size of each
/// block by its device and address.
///
/// # Errors
/// Why it cannot be used.
pub fn of_process(json: &[u8], sizes: &[(u32, u64, u64)]) -> Result<LiveHolders, String> {
    let holders: Holders = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    holders.check()?;
    let sizes: FxHashMap<(u32, u64), u64> =
        sizes.iter().map(|&(device, address, bytes)| ((device, address), bytes)).collect();
    let mut blocks: Vec<LiveBlock> = holders
        .blocks
        .iter()
        .filter_map(|block| {
            let bytes = *sizes.get(&(block.device, block.address))?;
            let holder = holder(&holders, block, Bytes(bytes));
            Some(LiveBlock { device: block.device, address: Addr(block.address), holder })
        })
        .collect();
    blocks
        .sort_by_key(|block| (std::cmp::Reverse(block.holder.bytes), block.device, block.address));
    let devices: std::collections::BTreeSet<u32> = blocks.iter().map(|one| one.device).collect();
    let drops = devices.into_iter().flat_map(|device| drops(&holders, device)).collect();
    let mut told = LiveHolders {
        bytes: blocks.iter().map(|block| block.holder.bytes.0).sum(),
        blocks,
        drops,
        complete: holders.is_whole(),
        graph: holders.graph,
        limits: text(Some(&holders)),
        text: String::new(),
    };
    told.text = told.words();
    Ok(told)
}

/// Rows of the text.
const ROWS: usize = 20;

impl LiveHolders {
    fn words(&self) -> String {
        let mut out = String::new();
        match &self.blocks[..] {
            [] => out += "no block of this size\n",
            [one] => block_words(&mut out, &one.holder),
            _ => self.sum_words(&mut out),
        }
        for sentence in &self.limits {
            let _ = writeln!(out, "{sentence}");
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn sum_words(&self, out: &mut String) {
        let count = grouped(self.blocks.len() as u64);
        let _ = writeln!(out, "{} in {count} blocks. Dropping frees", Bytes(self.bytes));
        for row in self.drops.iter().take(ROWS) {
            let indent = 2 * row.depth as usize;
            let bytes = Bytes(row.bytes).to_string();
            let _ = writeln!(out, "{bytes:>10}  {:indent$}{}", "", row.text);
        }
        if self.drops.len() > ROWS {
            let _ = writeln!(out, "{:>10}  and {} more", "", self.drops.len() - ROWS);
        }
        let kinds = [HolderKind::Cycle, HolderKind::BelowPython, HolderKind::Unread];
        for kind in kinds {
            let of_kind = || self.blocks.iter().filter(|block| block.holder.kind == kind);
            let bytes: u64 = of_kind().map(|block| block.holder.bytes.0).sum();
            if bytes > 0 {
                let words = match kind {
                    HolderKind::Cycle => "only reference cycles, gc.collect() frees them",
                    kind => kind.words(),
                };
                let _ = writeln!(out, "{:>10}  {words}", Bytes(bytes).to_string());
            }
        }
    }
}

fn block_words(out: &mut String, holder: &Holder) {
    let held = match holder.kind {
        HolderKind::Reference => format!("held by {}", holder.text),
        _ => holder.text.clone(),
    };
    let _ = writeln!(out, "{} {held}", holder.bytes);
    for line in [&holder.path, &holder.drop, &holder.note] {
        if !line.is_empty() {
            let _ = writeln!(out, "   {line}");
        }
    }
}
