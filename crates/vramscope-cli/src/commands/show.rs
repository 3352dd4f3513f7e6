//! `vramscope show`.

use super::blocks::write_rows;
use super::write_categories;
use crate::Failure;
use crate::arguments::Show as Arguments;
use crate::output::{self, STRONG, styled};
use crate::printable::printable;
use crate::read;
use crate::terminal;
use std::io::{self, Write};
use std::path::Path;
use vramscope_report::diagnostic::{self, Answer};
use vramscope_report::holders::HolderKind;
use vramscope_report::show::{LiveSum, Shown, show};
use vramscope_report::{FindingId, device_name};
use vramscope_units::{Bytes, grouped};

/// Frames of a stack that text shows.
const MAX_FRAMES: usize = 12;

/// Holders that text shows.
const MAX_HOLDERS: usize = 5;

/// Prints what an id stands for.
///
/// # Errors
/// The file cannot be read, the device does not exist, the id stands for nothing in it, or the
/// output cannot be written.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    in_order(&mut arguments);
    let mut device = arguments.input.choice.device;
    if device.is_none() {
        device = device_of(&arguments.id);
    }
    read::with_device_or(&arguments.input, device, |target| {
        let report = show(target, &arguments.id, Some(arguments.limit)).map_err(Failure::Usage)?;
        let all_frames = arguments.all_frames;
        output::print(&report, arguments.input.common.format, |out, report| {
            text(out, report, all_frames)
        })
    })
}

/// The id and the file may have either order: only one of them is there.
fn in_order(arguments: &mut Arguments) {
    let is_swapped = Path::new(&arguments.id).exists() && !arguments.input.path.exists();
    if let Some(id) = arguments.input.path.to_str().filter(|_| is_swapped) {
        let id = id.to_owned();
        arguments.input.path = std::mem::replace(&mut arguments.id, id).into();
    }
}

/// The device in an id: `0:0x7f3a5c000000@12` of a block, `growth-0-c65c1b32de31d67b` of a finding.
fn device_of(id: &str) -> Option<u32> {
    match id.split_once(":0x") {
        Some((device, _)) => device.parse().ok(),
        None => id.parse().ok().map(|id: FindingId| id.device),
    }
}

fn text(out: &mut dyn Write, report: &Shown<'_>, all_frames: bool) -> io::Result<()> {
    let device = device_name(report.device);
    writeln!(out, "{}  {device}, {}\n", styled(STRONG, report.path), report.id)?;
    if let Some(finding) = &report.finding {
        terminal::write(out, &diagnostic::text(&Answer::of_finding(finding), terminal::width()))?;
        writeln!(out)?;
    }
    if report.total == 0 {
        return Ok(());
    }
    let live =
        |sum: LiveSum| format!("{} in {} blocks", Bytes(sum.bytes), grouped(sum.blocks.into()));
    writeln!(
        out,
        "  {} blocks in the window; live at the peak: {}, at the end: {}",
        grouped(report.total as u64),
        live(report.at_peak),
        live(report.at_end)
    )?;
    if report.at_peak.blocks > 0 && report.total > 1 {
        writeln!(out)?;
        write_categories(out, &report.categories)?;
    }
    writeln!(out)?;
    write_rows(out, report.device, &report.blocks, report.shapes.all())?;
    output::write_omitted(out, report.omitted, "blocks")?;
    write_holders(out, report)?;
    let Some(largest) = report.blocks.first() else { return Ok(()) };
    let frames = report.stacks.frames(largest.stack);
    if frames.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  Call stack of the largest, innermost frame first")?;
    let own: Vec<_> = frames.iter().filter(|f| all_frames || !f.is_framework()).collect();
    // A stack of PyTorch alone is shown as it is.
    let shown = if own.is_empty() { frames.iter().collect() } else { own };
    let most = if all_frames { usize::MAX } else { MAX_FRAMES };
    for frame in shown.iter().take(most) {
        writeln!(out, "    {}", frame.label())?;
    }
    match frames.len() - shown.len().min(most) {
        0 => Ok(()),
        hidden => {
            writeln!(out, "  and {} more frames (--all-frames shows them)", grouped(hidden as u64))
        }
    }
}

/// What holds the blocks: each holder with the way to them, and what drops free.
fn write_holders(out: &mut dyn Write, report: &Shown<'_>) -> io::Result<()> {
    // The finding has named its own.
    if report.finding.as_ref().is_some_and(|finding| !finding.record.holders.is_empty()) {
        return Ok(());
    }
    for holder in report.holders.iter().take(MAX_HOLDERS) {
        let of =
            if report.holders.len() > 1 { format!("{} ", holder.bytes) } else { String::new() };
        let held = if holder.kind == HolderKind::Reference { "held by " } else { "" };
        writeln!(out, "\n  {of}{held}{}", printable(&holder.text))?;
        for line in [&holder.path, &holder.drop, &holder.note] {
            if !line.is_empty() {
                writeln!(out, "     {}", printable(line))?;
            }
        }
    }
    output::write_omitted(out, report.holders.len().saturating_sub(MAX_HOLDERS), "holders")
}
