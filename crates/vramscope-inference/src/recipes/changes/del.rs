//! What a line makes is dropped after the backward pass.

use crate::category::Category;
use crate::evidence::Evidence;
use crate::recipes::lives::Lives;
use crate::recipes::stacks::Place;
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::FrameId;

/// `del:SITE`: blocks of that line that outlive their step's backward pass end with it. Blocks that
/// outlive the step end at once outside of forward.
///
/// # Errors
/// Nothing is made through the line.
pub(super) fn del(lives: &mut Lives, site: &str, cx: Evidence<'_>) -> Result<Applied, Declined> {
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
    Ok(Applied { changed, had_it: changed == 0, ..Applied::default() })
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
