// A call stack, innermost frame first: the user's frames, and all frames on request.

import type { ComponentChildren } from "preact";
import type { FrameRow, StackDetail } from "../generated/protocol.js";
import type { Uses } from "../stores.js";

export type CallStackProperties = Uses<"viewSelection" | "workspace"> & {
  stack: StackDetail;
  /** A button beside the title. */
  tool: ComponentChildren;
};

export function CallStack({ viewSelection, workspace, stack, tool }: CallStackProperties) {
  const { frames } = stack;
  const { allFrames, hideFramework } = viewSelection;
  const own = frames.filter(({ framework }) => !framework);
  // A stack of framework frames only is not folded: nothing would be left.
  const folds = hideFramework.value && own.length > 0 && own.length < frames.length;
  const open = !folds || allFrames.value;
  return (
    <section class="stack" aria-labelledby="stack-title">
      <div class="stack-head">
        <h3 id="stack-title">Call stack</h3>
        {folds && (
          <button
            type="button"
            class="link"
            aria-expanded={open}
            data-testid="all-frames"
            onClick={() => {
              allFrames.value = !open;
            }}
          >
            {open ? "show your code only" : `show all ${frames.length} frames`}
          </button>
        )}
        {tool}
      </div>
      {stack.note !== null && <p class="stack-note">{stack.note}</p>}
      <ol class="frames">
        {(open ? frames : own).map((frame, index) => (
          <Frame key={index} workspace={workspace} frame={frame} />
        ))}
      </ol>
    </section>
  );
}

export function Frame({ workspace, frame }: Uses<"workspace"> & { frame: FrameRow }) {
  const { name, function: short, file, line, place, source, framework } = frame;
  return (
    <li>
      <button
        type="button"
        class="frame"
        data-framework={framework}
        title={`${name}\n${file}`}
        onClick={() => void workspace.peek()?.stores.cards.showFrame(name, file, line)}
      >
        <span class="frame-name">{short}</span>
        <span class="frame-place">{place}</span>
        {source !== "" && (
          <code class="frame-source" title={source}>
            {source}
          </code>
        )}
      </button>
    </li>
  );
}
