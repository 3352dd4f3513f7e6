//! `memstrata summary`.

use crate::{Format, paths, read};
use memstrata_engine::summary::{BandSummary, DeviceSummary, FileSummary, Summary, summarize};
use memstrata_engine::units::{Bytes, EventIndex, Micros, grouped};
use rayon::prelude::*;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the summary of every snapshot.
///
/// # Errors
/// When a folder cannot be listed or the output cannot be written.
pub(crate) fn run(given: &[PathBuf], format: Format) -> io::Result<ExitCode> {
    let files = paths::expand(given)?;
    let summaries: Vec<Vec<FileSummary>> = files
        .par_iter()
        .map(|path| {
            let (bytes, result) = read::load(path);
            summarize(&path.to_string_lossy(), bytes, &result)
        })
        .collect();
    let summary = Summary::new(summaries.into_iter().flatten().collect());
    let mut out = io::stdout().lock();
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &summary)?;
            writeln!(out)?;
        }
        Format::Text => {
            for file in &summary.files {
                text(&mut out, file)?;
            }
        }
    }
    out.flush()?;
    let failed = summary.files.iter().any(|f| f.error.is_some()) || summary.files.is_empty();
    if summary.files.is_empty() {
        eprintln!("memstrata: no snapshot found: folders are searched for .pickle, .pkl, .pt, .gz, .html and .json");
    }
    for file in &summary.files {
        if let Some(error) = &file.error {
            eprintln!("memstrata: {}: {}", file.path, error.message);
            if let Some(hint) = &error.hint {
                eprintln!("  {hint}");
            }
        }
    }
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn text(out: &mut impl Write, file: &FileSummary) -> io::Result<()> {
    if file.error.is_some() {
        return Ok(());
    }
    writeln!(
        out,
        "{}  {}, {} stacks of {} frames, {} annotations",
        file.path,
        Bytes(file.bytes),
        grouped(u64::from(file.stacks)),
        grouped(u64::from(file.frames)),
        grouped(file.annotations as u64),
    )?;
    for device in &file.devices {
        device_text(out, device)?;
    }
    if file.devices.is_empty() {
        writeln!(out, "  nothing was allocated")?;
    }
    for warning in &file.warnings {
        let times =
            if warning.count > 1 { format!(" ({} times)", grouped(u64::from(warning.count))) } else { String::new() };
        writeln!(out, "  warning: {}{times}", warning.message)?;
    }
    writeln!(out)
}

fn device_text(out: &mut impl Write, device: &DeviceSummary) -> io::Result<()> {
    writeln!(
        out,
        "  device {}  {} events, {} allocations, {} segments, {} blocks live at the end",
        device.device,
        grouped(device.events as u64),
        grouped(u64::from(device.allocations_in_window)),
        grouped(device.segments as u64),
        grouped(u64::from(device.end_live_blocks)),
    )?;
    writeln!(out, "    {:<16} {:>11} {:>11} {:>11}", "", "start", "peak", "end")?;
    band_text(out, "requested_bytes", device, &device.requested_bytes)?;
    band_text(out, "reserved_bytes", device, &device.reserved_bytes)?;
    for oom in &device.ooms {
        let free = oom.device_free.map_or(String::new(), |b| format!(", {} free on the device", Bytes(b)));
        writeln!(out, "    out of memory at {}: {} wanted{free}", EventIndex(oom.event), Bytes(oom.requested))?;
    }
    Ok(())
}

fn band_text(out: &mut impl Write, name: &str, device: &DeviceSummary, band: &BandSummary) -> io::Result<()> {
    let bytes = |b: i64| format!("{}{}", if b < 0 { "-" } else { "" }, Bytes(b.unsigned_abs()));
    let place = match (u32::try_from(band.peak_event), band.peak_us, device.window_us) {
        (Ok(event), Some(peak), Some([start, _])) => format!("{}, +{}", EventIndex(event), Micros(peak - start)),
        (Ok(event), ..) => EventIndex(event).to_string(),
        (Err(_), ..) => "before the window".to_owned(),
    };
    let estimate = if band.exactness == "exact" { "" } else { " (estimate)" };
    writeln!(
        out,
        "    {name:<16} {:>11} {:>11} {:>11}  peak {place}{estimate}",
        bytes(band.start),
        bytes(band.peak),
        bytes(band.end)
    )
}
