//! `vramscope info`.

use crate::Failure;
use crate::arguments::Files;
use crate::output::{self, FAINT, STRONG, Table, WARNING, signed_bytes, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::info::{FileInfo, Info, ProcessInfo, add_optimizations, info};
use vramscope_report::now;
use vramscope_report::optimizations::{Enabled, OptimizationRecord};
use vramscope_units::{Bytes, Micros, grouped};

/// Names of annotated ranges in text, at most.
const MAX_ANNOTATIONS: usize = 12;

/// Memory optimizations in text, at most.
const MAX_OPTIMIZATIONS: usize = 8;

/// Prints how each file was recorded.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Files) -> Result<(), Failure> {
    let read = read::each_file(&arguments.paths, &arguments.common.window, |_, _, result| {
        let mut infos: Vec<FileInfo> = Vec::new();
        if let Ok(file) = &result {
            infos.extend(file.entries.iter().map(|entry| {
                now(async |budget| {
                    let mut info = info(&entry.path, entry, budget).await;
                    add_optimizations(&mut info, entry, budget).await;
                    info
                })
            }));
        }
        infos
    })?;
    let (infos, skipped_files, outcome) = read.into_results();
    let infos: Vec<FileInfo> = infos.flatten().collect();
    if infos.is_empty() && outcome.is_err() {
        return outcome;
    }
    let report = Info::new(infos, skipped_files);
    output::print(&report, arguments.common.format, text)?;
    outcome
}

fn text(out: &mut dyn Write, report: &Info) -> io::Result<()> {
    match &report.files[..] {
        [file] => file_text(out, file, true),
        files => list(out, files),
    }
}

/// A row for each file.
fn list(out: &mut dyn Write, files: &[FileInfo]) -> io::Result<()> {
    let head = ["file", "events", "window", "recorded", "steps", "PyTorch", "host", "settings"];
    let mut table = Table::new(&head, &[false, true, true, false, true, false, false, false]);
    table.optional([2, 6, 5, 7]);
    table.whole([3]);
    let folder = output::write_folder(out, &files.iter().map(|file| file.path.as_str()))?;
    for file in files {
        let main = file.devices.iter().max_by_key(|device| device.events);
        let of = |text: fn(&ProcessInfo) -> Option<&String>| {
            file.process.as_ref().and_then(text).cloned().unwrap_or_default()
        };
        let span = main.and_then(|device| device.window_us);
        // The configuration names the others.
        let is_conf = |(key, _): &(&str, &str)| key.ends_with("ALLOC_CONF");
        let settings: Vec<String> = match changed(file).find(is_conf) {
            Some((_, conf)) => vec![conf.trim_matches('"').to_owned()],
            None => changed(file).map(|(key, value)| named(key, value)).collect(),
        };
        table.row(vec![
            file.path[folder..].to_owned(),
            grouped(main.map_or(0, |device| device.events) as u64),
            span.map_or(String::new(), |us| Micros(us as i64).to_string()),
            main.map_or("", |device| device.coverage).to_owned(),
            grouped(main.map_or(0, |device| device.steps) as u64),
            of(|process| process.torch.as_ref()),
            of(|process| process.host.as_ref()),
            settings.join(", "),
        ]);
    }
    table.write(out)?;
    let warned = files.iter().filter(|file| !file.warnings.is_empty()).count();
    if warned > 0 {
        let what = format!("{} of {} have warnings", grouped(warned as u64), files.len());
        writeln!(out, "  {}: `vramscope info FILE` has them", styled(WARNING, what))?;
    }
    Ok(())
}

/// The settings that differ from PyTorch's defaults.
fn changed(file: &FileInfo) -> impl Iterator<Item = (&str, &str)> {
    let settings = file.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    settings.filter(|(key, value)| match *key {
        "pinned_num_register_threads" => *value != "1",
        "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" => {
            !matches!(*value, "\"\"" | "null")
        }
        _ => !matches!(*value, "false" | "0" | "0.0" | "-1" | "null" | "\"\""),
    })
}

fn named(key: &str, value: &str) -> String {
    format!("{} = {}", printable(key), printable(value))
}

fn file_text(out: &mut dyn Write, file: &FileInfo, is_one: bool) -> io::Result<()> {
    writeln!(
        out,
        "{}  {} unpacked, {} stacks, {} frames",
        styled(STRONG, &file.path),
        Bytes(file.bytes),
        grouped(file.stacks.into()),
        grouped(file.frames.into()),
    )?;
    if let Some(process) = &file.process {
        process_text(out, process)?;
    }
    for d in &file.devices {
        let span = d.window_us.map_or(String::new(), |us| format!(" in {}", Micros(us as i64)));
        let (name, backend) = (device_name(d.device), output::backend(d.backend));
        writeln!(out, "  {name}{backend}  {} events{span}", grouped(d.events as u64))?;
        writeln!(out, "    {}", d.provenance)?;
        if let Some(pinned) = &d.pinned {
            writeln!(
                out,
                "    pinned host memory: {} requested, {} pinned at the end",
                signed_bytes(pinned.requested_bytes),
                signed_bytes(pinned.pinned_bytes)
            )?;
        }
        if let Some(by) = d.steps_by {
            let what = match by {
                "optimizer_step" | "optimizer_update" => "whole training steps",
                "repetition" => "passes",
                _ => "whole steps",
            };
            let by = by.replace('_', " ");
            writeln!(out, "    {} {what}, detected by {by}", grouped(d.steps as u64))?;
        }
        if is_one {
            optimizations_text(out, &d.optimizations)?;
        }
    }
    if file.streams.len() > 1 {
        let streams: Vec<String> = file.streams.iter().map(|s| format!("{s:#x}")).collect();
        writeln!(out, "  streams: {}", streams.join(", "))?;
    }
    if file.pools.len() > 1 {
        let pools: Vec<String> =
            file.pools.iter().map(|p| format!("({}, {})", p[0], p[1])).collect();
        writeln!(out, "  memory pools: {}", pools.join(", "))?;
    }
    let settings: Vec<(&str, &str)> = changed(file).collect();
    // Settings of each size are one line, if they are equal.
    let is_next = |a: &(&str, &str), b: &(&str, &str)| {
        let of = |key: &str| key.rsplit_once('.').map(|(name, _)| name.to_owned());
        a.1 == b.1 && of(a.0).is_some() && of(a.0) == of(b.0)
    };
    for equal in settings.chunk_by(is_next) {
        match equal {
            [(first, value), .., (last, _)] => {
                let last = last.rsplit('.').next().unwrap_or_default();
                writeln!(out, "  {}", named(&format!("{first} to .{last}"), value))?;
            }
            _ => equal
                .iter()
                .try_for_each(|(key, value)| writeln!(out, "  {}", named(key, value)))?,
        }
    }
    if !file.settings.is_empty() && settings.is_empty() {
        writeln!(out, "  all settings of the allocator are PyTorch's defaults")?;
    }
    if !file.annotations.is_empty() {
        let names: Vec<String> =
            file.annotations.iter().map(|(name, n)| format!("{name} ({n})")).collect();
        let left_out = names.len().saturating_sub(MAX_ANNOTATIONS);
        let rest = if left_out > 0 {
            format!(" and {} more", grouped(left_out as u64))
        } else {
            String::new()
        };
        let shown = names[..names.len().min(MAX_ANNOTATIONS)].join(", ");
        writeln!(out, "  annotated ranges: {}{}", styled(FAINT, shown), styled(FAINT, rest))?;
    }
    output::warnings(out, &file.warnings, file.devices.len() > 1)?;
    writeln!(out)
}

/// Writes the first memory optimizations, those that the run has before those that it lacks. It
/// says `lacks`, since `off` beside the name `foreach:off` reads as its opposite.
fn optimizations_text(out: &mut dyn Write, all: &[OptimizationRecord]) -> io::Result<()> {
    for of in all.iter().take(MAX_OPTIMIZATIONS) {
        let state = match of.state {
            Enabled::On => styled(STRONG, "has   "),
            Enabled::Partly => styled(STRONG, "partly"),
            Enabled::Off => styled(FAINT, "lacks "),
        };
        writeln!(out, "    {state} {}: {}", printable(&of.name), printable(&of.proof))?;
    }
    Ok(())
}

/// Writes what the file beside a snapshot says.
fn process_text(out: &mut dyn Write, process: &ProcessInfo) -> io::Result<()> {
    let named = |name: &str, value: Option<&String>| value.map(|value| format!("{name} {value}"));
    let rank = process.rank.map(|rank| match process.world_size {
        Some(size) => format!("rank {rank} of {size}"),
        None => format!("rank {rank}"),
    });
    let facts = [
        rank,
        named("on", process.host.as_ref()),
        named("PyTorch", process.torch.as_ref()),
        named("CUDA", process.cuda.as_ref()),
        named("driver for CUDA", process.driver.as_ref()),
        process.last_step.map(|step| format!("after step {step}")),
        named("written at", process.reason.as_ref()),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    writeln!(out, "  {}", printable(&facts.join(", ")))?;
    for device in &process.devices {
        let name = if device.name.is_empty() { "the device" } else { &device.name };
        writeln!(
            out,
            "    {}: {} has {}: {} reserved by PyTorch, {} free, {} outside of PyTorch",
            device_name(device.device),
            printable(name),
            Bytes(device.total_bytes),
            Bytes(device.reserved_bytes),
            Bytes(device.free_bytes),
            Bytes(device.other_bytes)
        )?;
    }
    let Some(holders) = &process.holders else { return Ok(()) };
    let cut = if holders.complete { "" } else { ", which was cut" };
    let graphs = if holders.graph { "" } else { " without autograd graphs" };
    writeln!(
        out,
        "    holders of {} blocks, by a walk through {} objects{graphs}{cut} ({:.1} s)",
        grouped(holders.blocks as u64),
        grouped(holders.objects),
        holders.seconds
    )
}
