// A call stack, innermost first. Frames of PyTorch itself are dim, and runs of them fold into a line that says how many.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { FrameRow, StackDetail } from "../generated/protocol.js";

/** A single frame takes no more room than the line that would stand for it. */
const LEAST_FOLDED = 2;

interface Run {
  framework: boolean;
  frames: FrameRow[];
}

/** Neighbours of one kind together. */
function runsOf(frames: FrameRow[]): Run[] {
  const runs: Run[] = [];
  for (const frame of frames) {
    const last = runs.at(-1);
    if (last?.framework === frame.framework) last.frames.push(frame);
    else runs.push({ framework: frame.framework, frames: [frame] });
  }
  return runs;
}

export function CallStack({ stack, tool }: { stack: StackDetail; tool: ComponentChildren }) {
  const runs = runsOf(stack.frames);
  // Where there is nothing but framework, folding it would leave nothing.
  const foldable = runs.length > 1;
  return (
    <section class="stack" aria-labelledby="stack-title">
      <div class="stack-head">
        <h3 id="stack-title">Call stack</h3>
        {tool}
      </div>
      {stack.note !== null && <p class="stack-note">{stack.note}</p>}
      <ol class="frames">
        {runs.map((run, index) => (
          <RunOfFrames key={index} run={run} folds={foldable && run.framework && run.frames.length >= LEAST_FOLDED} />
        ))}
      </ol>
    </section>
  );
}

function RunOfFrames({ run, folds }: { run: Run; folds: boolean }) {
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
      {(open || !folds) && run.frames.map((frame, index) => <Frame key={index} frame={frame} />)}
    </>
  );
}

function Frame({ frame }: { frame: FrameRow }) {
  const { name, file, place, framework } = frame;
  return (
    <li class="frame" data-framework={framework} title={`${name}\n${file}`}>
      <span class="frame-name">{name}</span>
      <span class="frame-place">{place}</span>
    </li>
  );
}
