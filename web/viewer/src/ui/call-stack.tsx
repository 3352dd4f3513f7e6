// A call stack, innermost frame first: it begins at the program's own frame, and frames of
// frameworks are folded to one line.

import type { ComponentChildren } from "preact";
import type { FrameRow, StackDetail } from "../generated/protocol.js";
import type { Uses } from "../stores.js";
import { Icon } from "./icons.js";

export type CallStackProperties = Uses<"viewSelection" | "workspace"> & {
  stack: StackDetail;
  /** Where it begins, if no frame of the program called it: `backward of gpt.py:44 forward`. */
  start?: string | undefined;
  /** A button beside the title. */
  tool: ComponentChildren;
};

export function CallStack({ viewSelection, workspace, stack, start, tool }: CallStackProperties) {
  const { frames, folded, note } = stack;
  const { allFrames, hideFramework } = viewSelection;
  const own = frames.filter(({ framework }) => !framework);
  const folds = hideFramework.value && folded !== "";
  const open = !folds || allFrames.value;
  return (
    <section class="stack" aria-labelledby="stack-title">
      <div class="stack-head">
        <h3 id="stack-title">Call stack</h3>
        {tool}
      </div>
      {note !== null && <p class="stack-note">{note}</p>}
      <ol class="frames">
        {start && <li class="frame-row frame-start">{start}</li>}
        {(open ? frames : own).map((frame, index) => (
          <Frame key={index} workspace={workspace} frame={frame} />
        ))}
        {folds && (
          <li>
            <button
              type="button"
              class="link frames-folded"
              aria-expanded={open}
              data-testid="all-frames"
              onClick={() => {
                allFrames.value = !open;
              }}
            >
              <Icon name={open ? "down" : "forward"} /> {folded}
            </button>
          </li>
        )}
      </ol>
    </section>
  );
}

export function Frame({ workspace, frame }: Uses<"workspace"> & { frame: FrameRow }) {
  const { name, function: short, file, line, place, framework } = frame;
  return (
    <li class="frame-row">
      <button
        type="button"
        class="frame"
        data-framework={framework}
        title={`${name}\n${file}`}
        onClick={() => void workspace.peek()?.stores.cards.showFrame(name, file, line)}
      >
        <span class="frame-name">{short}</span>
        <span class="frame-place">{place}</span>
      </button>
      <FrameSource workspace={workspace} frame={frame} />
    </li>
  );
}

/** The line of a frame, or a button that leads to it. Both open the source view. */
function FrameSource({ workspace, frame }: Uses<"workspace"> & { frame: FrameRow }) {
  const views = workspace.value;
  const { file, line, place, source, framework } = frame;
  if (!views || line === 0 || (framework && source === "")) return null;
  const { sources } = views.stores;
  const known = sources.frame(frame);
  const name = `Show ${place} in Source`;
  const open = () => sources.open(file, line);
  if (!known)
    return (
      <button type="button" class="frame-open" title={name} aria-label={name} onClick={open}>
        <Icon name="forward" />
      </button>
    );
  const title = [
    known.text.trim(),
    known.from !== "" && `from ${known.from}`,
    known.state === "unsure" && "which may have been changed after the recording",
    name,
  ];
  return (
    <button
      type="button"
      class="frame-source"
      data-state={known.state}
      title={title.filter(Boolean).join("\n")}
      onClick={open}
    >
      <code>{known.text.trim()}</code>
    </button>
  );
}
