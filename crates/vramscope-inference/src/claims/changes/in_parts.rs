//! The function that failed works in parts.

use super::prelude::*;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;

/// The part of a function's bytes in earlier passes that may stay live after it, in percent: a
/// small result. More waits for backward, or is a large result.
const MAX_KEPT_PERCENT: u64 = 2;

/// The failed request is divided, and with it what its function makes in the failed pass. Not where
/// a pass keeps what the function makes for backward: its parts wait there together.
pub(super) static IN_PARTS: Change = Change {
    form: "in_parts:N",
    does: "the failed request, and what its function makes in the failed pass, is divided by N",
    tries: |offer| {
        let has_failed = offer.run.failed_at().is_some();
        [2, 4, 8, 16].into_iter().filter(|_| has_failed).map(Value::Parts).collect()
    },
    is_of_request: true,
    apply: |lives, facts, value, cx| in_parts(lives, facts, value.parts(), cx),
    what: "the function whose request failed",
    snippet: include_str!("snippets/in_parts.py"),
    called: |value, _| format!("Run the failed function in {value} parts"),
    ..Change::PLAIN
};

/// # Errors
/// No request failed in a forward pass, or backward needs what its function makes.
fn in_parts(
    lives: &mut Lives,
    facts: &Facts,
    parts: u32,
    cx: Evidence<'_>,
) -> Result<Applied, Declined> {
    let failure = lives.failure.ok_or(Declined::NoFailedPass)?;
    let oom = cx.trace.ooms.last().ok_or(Declined::NoFailedPass)?;
    let stack = cx.stack_of_event(oom.event);
    let function_of = |stack| {
        let frame = cx.snapshot.frame(cx.program_frame(stack)?);
        (frame.line > 0).then_some((frame.name, frame.file))
    };
    let function = function_of(stack).ok_or(Declined::NoFailedPass)?;
    let (phase, _) = lives.at(failure.at);
    let is_forward = matches!(
        phase,
        StepPhase::Forward | StepPhase::Evaluation | StepPhase::Generation | StepPhase::Other
    );
    if !is_forward {
        return Err(Declined::NoFailedPass);
    }
    // What is alive yet may wait for a backward pass to come.
    let is_kept = |life: &Life| {
        life.end >= failure.at
            || life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward)
    };
    let mut known: FxHashMap<StackId, bool> = FxHashMap::default();
    let mut of_function = |life: &Life| {
        let of = |stack| function_of(stack) == Some(function);
        life.stack.is_some_and(|stack| *known.entry(stack).or_insert_with(|| of(stack)))
    };
    // What the failed call has made before. An earlier call's result is not divided.
    let begin = facts.passes.iter().rfind(|pass| pass.begin < failure.at);
    let before =
        lives.all[lives.born(begin.map_or(f64::MIN, |pass| pass.begin), failure.at)].iter();
    let began = before.rev().take_while(|life| of_function(life)).last();
    let from = began.map_or(failure.at, |life| life.begin);
    let (mut made, mut kept) = (0, 0);
    for life in lives.all.iter().filter(|life| life.begin < from && of_function(life)) {
        made += life.bytes;
        kept += if is_kept(life) { life.bytes } else { 0 };
    }
    // A function that no earlier pass has shown may keep what it makes, or return it. A result
    // that is far smaller than what it is made of does not count.
    if made == 0 || kept * 100 >= made * MAX_KEPT_PERCENT {
        return Err(Declined::KeptForBackward);
    }
    let parts = u64::from(parts);
    let mut changed = 0;
    for life in lives.all.iter_mut().filter(|life| life.begin >= from) {
        let is_request = life.begin == failure.at && life.bytes == failure.bytes;
        if is_request || of_function(life) && !life.is_of_model() {
            life.bytes = life.bytes.div_ceil(parts);
            changed += 1;
        }
    }
    let applied = Applied::of(changed, Declined::NoFailedPass)?;
    Ok(Applied { site: lives.stacks.own(cx.snapshot.stacks.frames(stack)).next(), ..applied })
}
