// A call stack, innermost first. Frames of PyTorch itself are dim, and runs of them fold into a
// line that says how many.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FrameRow, StackDetail } from "../generated/protocol.js";
import type { Session } from "../session.js";

/** A single frame takes no more room than the line that would stand for it. */
const LEAST_FOLDED = 2;

interface Run {
  framework: boolean;
  frames: FrameRow[];
}

/** Neighbors of one kind together. */
function runsOf(frames: FrameRow[]): Run[] {
  const runs: Run[] = [];
  for (const frame of frames) {
    const last = runs.at(-1);
    if (last?.framework === frame.framework) last.frames.push(frame);
    else runs.push({ framework: frame.framework, frames: [frame] });
  }
  return runs;
}

interface CallStackProperties {
  session: Session;
  stack: StackDetail;
  tool: ComponentChildren;
}

export function CallStack({ session, stack, tool }: CallStackProperties) {
  const runs = runsOf(stack.frames);
  // Where there is nothing but framework, folding it would leave nothing.
  const foldable = runs.length > 1 && session.linked.hideFramework.value;
  return (
    <section class="stack" aria-labelledby="stack-title">
      <div class="stack-head">
        <h3 id="stack-title">Call stack</h3>
        {tool}
      </div>
      {stack.note !== null && <p class="stack-note">{stack.note}</p>}
      <ol class="frames">
        {runs.map((run, index) => (
          <RunOfFrames
            key={index}
            session={session}
            run={run}
            folds={foldable && run.framework && run.frames.length >= LEAST_FOLDED}
          />
        ))}
      </ol>
    </section>
  );
}

function RunOfFrames({ session, run, folds }: { session: Session; run: Run; folds: boolean }) {
  const [open, setOpen] = useState(false);
  const toggle = folds && (
    <li class="fold">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span>{run.frames.length} framework frames</span>
        <span>{open ? "hide" : "show"}</span>
      </button>
    </li>
  );
  return (
    <>
      {toggle}
      {(open || !folds) &&
        run.frames.map((frame, index) => <Frame key={index} session={session} frame={frame} />)}
    </>
  );
}

function Frame({ session, frame }: { session: Session; frame: FrameRow }) {
  const { name, file, line, place, framework } = frame;
  return (
    <li>
      <button
        type="button"
        class="frame"
        data-framework={framework}
        title={`${name}\n${file}`}
        onClick={() => void session.workspace.peek()?.showFrame(name, file, line)}
      >
        <span class="frame-name">{name}</span>
        <span class="frame-place">{place}</span>
      </button>
    </li>
  );
}
