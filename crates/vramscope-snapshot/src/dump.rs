//! A snapshot as text. Tests compare it with committed files, and compare ways of reading a file.

use crate::{Events, Snapshot, StackId};
use std::fmt::{self, Write as _};

/// All tables as text: one row per line, with strings instead of ids.
pub fn dump(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    write(snapshot, &mut out).expect("writing to a String cannot fail");
    out
}

fn write(s: &Snapshot, out: &mut String) -> fmt::Result {
    for device in &s.devices {
        writeln!(
            out,
            "{}: {} events, {} segments",
            crate::device_name(device.device),
            device.events.len(),
            device.segments.len()
        )?;
        for row in device.events.clone() {
            event(s, row, out)?;
        }
        for segment in s.segments_of(device) {
            writeln!(
                out,
                "  segment {} {} allocated {} active {} requested {} {:?} stream {} pool {:?}{} \
                 stack {}",
                segment.address.plain(),
                segment.total_size.0,
                segment.allocated_size.0,
                segment.active_size.0,
                segment.requested_size.0,
                segment.segment_type,
                s.stream(segment.stream),
                s.pool(segment.pool),
                if segment.is_expandable { " expandable" } else { "" },
                stack(s, segment.stack),
            )?;
            for block in s.blocks_of(segment) {
                writeln!(
                    out,
                    "    block {} {} requested {} {:?} stack {}",
                    block.address.plain(),
                    block.size.0,
                    block.requested_size.0,
                    block.state,
                    stack(s, block.stack)
                )?;
            }
        }
    }
    for a in &s.annotations {
        writeln!(
            out,
            "annotation {:?} {:?} device {} at {:?}",
            s.text(a.name),
            a.stage,
            a.device,
            a.time.map(|t| t.0)
        )?;
    }
    for (key, value) in &s.settings {
        writeln!(out, "setting {key} = {value}")?;
    }
    for w in s.report.warnings() {
        writeln!(out, "warning {} x{}: {}", w.kind.name(), w.count, w.message)?;
    }
    writeln!(out, "{} frames and {} stacks in use", s.used.frames, s.used.stacks)
}

fn event(s: &Snapshot, row: u32, out: &mut String) -> fmt::Result {
    let e = &s.events;
    write!(
        out,
        "  {} {} {} stream {} pool {:?} at {:?} stack {}",
        s.action_name(e.action(row)),
        e.addr(row).plain(),
        e.size(row).0,
        s.stream(e.stream(row)),
        s.pool(e.pool(row)),
        e.time(row).map(|t| t.0),
        stack(s, e.stack(row)),
    )?;
    if let Some(free) = Events::sparse(&e.device_free, row) {
        write!(out, " device_free {}", free.0)?;
    }
    for (name, column) in [
        ("compile_context", &e.compile_context),
        ("user_metadata", &e.user_metadata),
        ("internal_metadata", &e.internal_metadata),
        ("forward_frames", &e.forward_frames),
        ("category", &e.category),
    ] {
        if let Some(text) = Events::sparse(column, row) {
            write!(out, " {name} {:?}", s.text(text))?;
        }
    }
    out.push('\n');
    Ok(())
}

fn stack(s: &Snapshot, id: StackId) -> String {
    let mut out = String::from("[");
    for &frame in s.stacks.frames(id) {
        let f = s.frame(frame);
        let (name, file) = (s.strings.bytes(f.name), s.strings.bytes(f.file));
        write!(out, "{}@{}:{}", name.escape_ascii(), file.escape_ascii(), f.line)
            .expect("writing to a String cannot fail");
        for (key, text) in s.frames.notes(frame) {
            write!(out, "({}={:?})", s.text(key), s.text(text))
                .expect("writing to a String cannot fail");
        }
        out.push(' ');
    }
    out.push(']');
    out
}
