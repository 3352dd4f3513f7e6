//! `vramscope summary`.

use crate::Failure;
use crate::arguments::Files;
use crate::output::{self, FAINT, STRONG, Table, WARNING, signed_bytes, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::summary::{BandSummary, DeviceSummary, FileSummary, Summary, summarize};
use vramscope_report::{DeviceKind, device_name, exactness};
use vramscope_units::{Bytes, EventIndex, Micros, grouped};

/// Prints the summary of every snapshot.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Files) -> Result<(), Failure> {
    let read =
        read::each_file(&arguments.paths, &arguments.common.window, |path, bytes, result| {
            summarize(&path.to_string_lossy(), bytes, &result)
        })?;
    let (files, skipped_files, outcome) = read.into_results();
    let summary = Summary::new(files.flatten().collect(), skipped_files);
    output::print(&summary, arguments.common.format, |out, summary| match &summary.files[..] {
        [file] => text(out, file),
        files => list(out, files),
    })?;
    outcome
}

/// A row for each device of each file.
fn list(out: &mut dyn Write, files: &[FileSummary]) -> io::Result<()> {
    let head =
        ["file", "device", "events", "requested peak", "reserved peak", "at the end", "OOMs"];
    let mut table = Table::new(&head, &[false, false, true, true, true, true, true]);
    table.optional([2]);
    let folder = output::write_folder(out, &files.iter().map(|file| file.path.as_str()))?;
    for file in files.iter().filter(|file| file.error.is_none()) {
        for device in &file.devices {
            table.row(vec![
                file.path[folder..].to_owned(),
                device_name(device.device).replace("device ", ""),
                grouped(device.events as u64),
                signed_bytes(device.requested_bytes.peak.0),
                signed_bytes(device.reserved_bytes.peak.0),
                signed_bytes(device.requested_bytes.end.0),
                if device.ooms.is_empty() {
                    String::new()
                } else {
                    grouped(device.ooms.len() as u64)
                },
            ]);
        }
        if file.devices.is_empty() {
            let mut row = vec![file.path[folder..].to_owned(), "no memory".to_owned()];
            row.resize(head.len(), String::new());
            table.row(row);
        }
    }
    table.write(out)?;
    let warned = files.iter().filter(|file| !file.warnings.is_empty()).count();
    if warned > 0 {
        let what = format!("{} of {} have warnings", grouped(warned as u64), files.len());
        writeln!(out, "  {}: `vramscope summary FILE` has them", styled(WARNING, what))?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, file: &FileSummary) -> io::Result<()> {
    if file.error.is_some() {
        return Ok(());
    }
    writeln!(
        out,
        "{}  {}, {} stacks, {} frames, {} annotations",
        styled(STRONG, &file.path),
        Bytes(file.bytes),
        grouped(u64::from(file.stacks)),
        grouped(u64::from(file.frames)),
        grouped(file.annotations as u64),
    )?;
    for device in &file.devices {
        write_device(out, device)?;
    }
    if file.devices.is_empty() {
        writeln!(out, "  no memory was allocated")?;
    }
    output::warnings(out, &file.warnings, file.devices.len() > 1)?;
    writeln!(out)
}

fn write_device(out: &mut dyn Write, device: &DeviceSummary) -> io::Result<()> {
    writeln!(
        out,
        "  {}{}  {} events, {} allocations, {} segments, {} blocks live at the end",
        device_name(device.device),
        output::backend(device.backend),
        grouped(device.events as u64),
        grouped(u64::from(device.allocations_in_window)),
        grouped(device.segments as u64),
        grouped(u64::from(device.end_live_blocks)),
    )?;
    if device.kind == DeviceKind::Host.name() {
        writeln!(
            out,
            "    pinned host memory: {} requested, {} pinned at the peak",
            signed_bytes(device.requested_bytes.peak.0),
            signed_bytes(device.reserved_bytes.peak.0)
        )?;
    }
    let head = format!("    {:<16} {:>11} {:>11} {:>11}", "", "start", "peak", "end");
    writeln!(out, "{}", styled(FAINT, head))?;
    write_band(out, "requested_bytes", device, &device.requested_bytes)?;
    write_band(out, "active_bytes", device, &device.active_bytes)?;
    write_band(out, "allocated_bytes", device, &device.allocated_bytes)?;
    write_band(out, "reserved_bytes", device, &device.reserved_bytes)?;
    for oom in &device.ooms {
        let free = oom.device_free.map_or(String::new(), |b| format!(", {b} free on the device"));
        writeln!(out, "    out of memory at {}: {} requested{free}", oom.event, oom.requested)?;
    }
    Ok(())
}

fn write_band(
    out: &mut dyn Write,
    name: &str,
    device: &DeviceSummary,
    band: &BandSummary,
) -> io::Result<()> {
    let place = match (u32::try_from(band.peak_event.0), band.peak_us, device.window_us) {
        (Ok(event), Some(peak), Some([start, _])) => {
            format!("{}, +{}", EventIndex(event), Micros(peak.0 - start))
        }
        (Ok(event), ..) => EventIndex(event).to_string(),
        (Err(_), ..) => output::BEFORE_WINDOW.to_owned(),
    };
    let estimate = output::estimate_note(exactness(band.exactness));
    writeln!(
        out,
        "    {name:<16} {:>11} {:>11} {:>11}  peak {place}{estimate}",
        signed_bytes(band.start.0),
        signed_bytes(band.peak.0),
        signed_bytes(band.end.0)
    )
}
