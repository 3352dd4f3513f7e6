//! The file format of speedscope: a sampled profile in which each call stack is a weighted sample.

use super::measure;
use crate::device_name;
use crate::flame::Weight;
use crate::{Target, frame, text};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Measure, NoStack, Share, by_stack, is_library};

/// The reasons for missing stacks, in the order of their values.
const REASONS: [NoStack; 3] = [NoStack::BeforeRecording, NoStack::Backward, NoStack::NotRecorded];

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    shared: Shared<'a>,
    profiles: [Profile; 1],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u32,
    end_value: u128,
    samples: Vec<Vec<u32>>,
    weights: Vec<u128>,
}

pub(super) async fn write(
    target: Target<'_>,
    weight: Weight,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let (snapshot, trace, measure) = (target.snapshot(), target.trace(), measure(weight));
    let carving = target.entry.carving(target.index);
    let shares = by_stack(trace, |i| measure.of(trace, carving, i), budget).await;
    let row = |id: u32| {
        let frame = frame(snapshot, FrameId(id));
        // In a library, the line is an offset in bytes.
        let is_library = is_library(&frame.file);
        Row {
            name: frame.name,
            file: Some(frame.file).filter(|f| !f.is_empty()),
            line: Some(frame.line).filter(|&l| l > 0 && !is_library),
        }
    };
    let count = snapshot.frames.len() as u32;
    let mut rows: Vec<Row<'_>> = (0..count).map(row).collect();
    // The last rows stand for missing stacks.
    rows.extend(REASONS.iter().map(|&why| Row {
        name: text::no_stack(why).into(),
        file: None,
        line: None,
    }));
    let sample = |share: &Share| match share.no_stack {
        Some(why) => vec![count + why as u32],
        None => snapshot.stacks.frames(share.stack).iter().rev().map(|f| f.0).collect(),
    };
    let document = Document {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: target.path,
        exporter: concat!("vramscope ", env!("CARGO_PKG_VERSION")),
        shared: Shared { frames: rows },
        profiles: [Profile {
            kind: "sampled",
            name: device_name(target.device()).into_owned(),
            unit: match measure {
                Measure::ByteTime | Measure::Count => "none",
                _ => "bytes",
            },
            start_value: 0,
            end_value: shares.iter().map(|s| s.weight).sum(),
            samples: shares.iter().map(sample).collect(),
            weights: shares.iter().map(|s| s.weight).collect(),
        }],
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
