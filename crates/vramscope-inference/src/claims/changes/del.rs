//! The results of a line are dropped after the backward pass.

use super::prelude::*;
use crate::evidence::stacks::Place;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::FrameId;
use vramscope_trace::file_name;

pub(super) static DEL: Change = Change {
    form: "del:FILE:LINE",
    does: "what the line makes dies after backward",
    error_percent: Some(3.0),
    tries: |offer| {
        let held = offer.held.iter().filter(|(_, bytes)| *bytes >= MIN_HELD);
        let line = |frame: FrameId| {
            let frame = offer.cx.snapshot.frame(frame);
            format!("{}:{}", file_name(&offer.cx.snapshot.text(frame.file)), frame.line)
        };
        held.take(MAX_HELD).map(|&(frame, _)| Value::Site(line(frame))).collect()
    },
    group: Group::Line,
    apply: |lives, _, value, cx| del(lives, value.site(), cx),
    compare: |_, a, b| compare(a, b),
    what: "what this line makes outlives the backward pass",
    snippet: include_str!("snippets/del.py"),
    called: |value, _| format!("Drop what {value} keeps, after backward"),
    ..Change::PLAIN
};

/// The number of lines whose results are dropped.
const MAX_HELD: usize = 2;

/// Results of fewer bytes are not worth a line.
const MIN_HELD: u64 = 16 << 20;

/// The line whose results are not held any more, if nothing else changed.
fn compare(a: &Features, b: &Features) -> Compared {
    let (a, b) = (&a.traits, &b.traits);
    let mut gone = a.held.iter().filter(|held| {
        !b.held.iter().any(|other| other.function == held.function)
            && b.functions.contains(&held.function)
    });
    let Some(first) = gone.next() else { return Compared::Same };
    let rest: u64 = gone.map(|held| held.bytes).sum();
    if rest < first.bytes {
        Compared::CameAlone(Value::Site(first.line.clone()))
    } else {
        Compared::Same
    }
}

/// Blocks of that line that outlive their step's backward pass end with it. Blocks that
/// outlive the step end at once outside of forward.
///
/// # Errors
/// Nothing is made through the line.
fn del(lives: &mut Lives, site: &str, cx: Evidence<'_>) -> Result<Applied, Declined> {
    let places = places(lives, site, cx);
    let mut ends: FxHashMap<i32, f64> = FxHashMap::default();
    for step in lives.steps() {
        ends.extend(lives.span(step, StepPhase::Backward).map(|span| (step, span.1)));
    }
    let (mut changed, mut found) = (0, false);
    for index in 0..lives.all.len() {
        let life = lives.all[index];
        if life.is_of_model() && life.category != Category::Cache
            || matches!(life.category, Category::Gradient | Category::Communication)
            || matches!(life.phase, StepPhase::Evaluation | StepPhase::Generation)
        {
            continue;
        }
        let frames = lives.frames(&life);
        if !frames.iter().any(|&frame| places.contains(&lives.stacks.place(frame))) {
            continue;
        }
        found = true;
        let end = if life.phase == StepPhase::Forward {
            ends.get(&life.step).filter(|&&end| life.end >= end).map(|end| end - 0.25)
        } else {
            let outlives = life.dies_in.is_none_or(|(_, step)| step > life.step);
            outlives.then_some(life.begin + 0.5)
        };
        if let Some(end) = end {
            lives.all[index].end = end.max(life.begin + 0.1);
            changed += 1;
        }
    }
    if !found {
        return Err(Declined::NoSite);
    }
    Applied::of(changed, Declined::HadIt)
}

/// The places of a site: the path's end and the line.
pub(super) fn places(lives: &Lives, site: &str, cx: Evidence<'_>) -> FxHashSet<Place> {
    let Some((file, line)) = site.rsplit_once(':') else { return FxHashSet::default() };
    let line: u32 = line.parse().unwrap_or(0);
    let mut places = FxHashSet::default();
    for id in 0..cx.snapshot.frames.len() {
        let frame = cx.snapshot.frame(FrameId(id as u32));
        if frame.line != line {
            continue;
        }
        let path = cx.snapshot.text(frame.file);
        let is_file = path
            .strip_suffix(file)
            .is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']));
        if is_file {
            places.insert(lives.stacks.place(FrameId(id as u32)));
        }
    }
    places
}
