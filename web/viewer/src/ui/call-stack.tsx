// A call stack, innermost frame first. Framework frames are dim, and runs of them fold into one
// line.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FrameRow, StackDetail } from "../generated/protocol.js";
import type { Uses } from "../stores.js";

/** A single frame is no longer than the line that would replace it. */
const MIN_FOLDED = 2;

interface Run {
  framework: boolean;
  frames: FrameRow[];
}

/** Consecutive frames of one kind together. */
function runsOf(frames: FrameRow[]): Run[] {
  const runs: Run[] = [];
  for (const frame of frames) {
    const last = runs.at(-1);
    if (last?.framework === frame.framework) last.frames.push(frame);
    else runs.push({ framework: frame.framework, frames: [frame] });
  }
  return runs;
}

export type CallStackProperties = Uses<"viewSelection" | "workspace"> & {
  stack: StackDetail;
  /** A button beside the title. */
  tool: ComponentChildren;
};

export function CallStack({ viewSelection, workspace, stack, tool }: CallStackProperties) {
  const runs = runsOf(stack.frames);
  // A stack of framework frames only is not folded: nothing would be left.
  const foldable = runs.length > 1 && viewSelection.hideFramework.value;
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
            workspace={workspace}
            run={run}
            folds={foldable && run.framework && run.frames.length >= MIN_FOLDED}
          />
        ))}
      </ol>
    </section>
  );
}

type RunProperties = Uses<"workspace"> & { run: Run; folds: boolean };

function RunOfFrames({ workspace, run, folds }: RunProperties) {
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
        run.frames.map((frame, index) => <Frame key={index} workspace={workspace} frame={frame} />)}
    </>
  );
}

function Frame({ workspace, frame }: Uses<"workspace"> & { frame: FrameRow }) {
  const { name, file, line, place, framework } = frame;
  return (
    <li>
      <button
        type="button"
        class="frame"
        data-framework={framework}
        title={`${name}\n${file}`}
        onClick={() => void workspace.peek()?.stores.cards.showFrame(name, file, line)}
      >
        <span class="frame-name">{name}</span>
        <span class="frame-place">{place}</span>
      </button>
    </li>
  );
}
