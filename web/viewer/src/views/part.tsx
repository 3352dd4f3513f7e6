// The form that chooses a part of a file that is too large, and the line over an open part.

import { useRef, useState } from "preact/hooks";
import type { EventRange } from "../client/messages.js";
import type { RankFile } from "../client/rank-file.js";
import type { Failure, PartChoice } from "../generated/protocol.js";
import type { Uses } from "../stores.js";

type PartFormProperties = Uses<"runs"> & {
  file: RankFile;
  failure: Failure;
  choice: PartChoice;
};

export function PartForm({ runs, file, failure, choice }: PartFormProperties) {
  const { curve, events, text } = choice;
  const [part, setPart] = useState<EventRange>(file.part ?? choice);
  const change = (end: keyof EventRange, value: number) => {
    if (Number.isInteger(value)) setPart({ ...part, [end]: value });
  };
  return (
    <div class="plot-state">
      <form
        class="part-form"
        data-testid="part-form"
        onSubmit={(event) => {
          event.preventDefault();
          runs.pool.readPart(file, part);
        }}
      >
        <h3>{file.path} is too large to open</h3>
        <p>{failure.message}</p>
        {failure.hint !== null && <p class="dim">{failure.hint}</p>}
        <figure>
          <Curve choice={choice} part={part} choose={setPart} />
          <figcaption class="dim">
            <span data-testid="part-events" data-value={events.raw}>
              {curve.text}
            </span>
            <span>{text} Drag over the curve to choose a part.</span>
          </figcaption>
        </figure>
        <div class="part-fields">
          <End
            label="First event"
            value={part.first}
            min={0}
            choice={choice}
            set={(value) => change("first", value)}
          />
          <End
            label="Last event"
            value={part.last}
            min={part.first}
            choice={choice}
            set={(value) => change("last", value)}
          />
          <button type="submit" class="button primary">
            Open this part
          </button>
        </div>
      </form>
    </div>
  );
}

interface EndProperties {
  label: string;
  value: number;
  min: number;
  choice: PartChoice;
  set(value: number): void;
}

function End({ label, value, min, choice, set }: EndProperties) {
  const max = choice.edges.at(-1);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="number"
        required
        step={1}
        min={min}
        {...(max !== undefined && { max: max - 1 })}
        value={value}
        data-value={value}
        onInput={(event) => set(event.currentTarget.valueAsNumber)}
      />
    </label>
  );
}

interface CurveProperties {
  choice: PartChoice;
  part: EventRange;
  choose(part: EventRange): void;
}

/** The curve with the chosen part. A drag chooses whole columns of the engine's curve. */
function Curve({ choice, part, choose }: CurveProperties) {
  const { curve, edges } = choice;
  const from = useRef<number | null>(null);
  const all = edges.at(-1) || 1;
  const column = (event: PointerEvent) => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    const at = Math.floor(((event.clientX - left) / width) * (edges.length - 1));
    return Math.max(0, Math.min(edges.length - 2, at));
  };
  const drag = (event: PointerEvent) => {
    if (from.current === null) return;
    const ends = [from.current, column(event)];
    const [first, end] = [edges[Math.min(...ends)], edges[Math.max(...ends) + 1]];
    if (first !== undefined && end !== undefined) choose({ first, last: end - 1 });
  };
  return (
    <svg
      viewBox="0 0 1000 100"
      preserveAspectRatio="none"
      aria-hidden="true"
      data-testid="part-curve"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = column(event);
        drag(event);
      }}
      onPointerMove={drag}
      onPointerUp={(event) => {
        drag(event);
        from.current = null;
      }}
      onPointerCancel={() => {
        from.current = null;
      }}
    >
      <path d={curve.path} />
      <rect
        class="part-mark"
        x={(part.first / all) * 1000}
        width={Math.max(2, ((part.last + 1 - part.first) / all) * 1000)}
        height="100"
      />
    </svg>
  );
}

type PartLineProperties = Uses<"runs" | "selection" | "viewSelection">;

/** Goes back to the form. */
function chooseAgain(owners: PartLineProperties, file: RankFile): void {
  const { runs, selection, viewSelection } = owners;
  const tooLarge = file.tooLarge.peek();
  if (tooLarge === null) return;
  selection.select(null);
  viewSelection.reset();
  runs.pool.choosePart(file, tooLarge.failure);
}

/** The line over a plot that shows a part of a file. */
export function PartLine(owners: PartLineProperties) {
  const trace = owners.selection.trace.value;
  const note = trace?.part.warnings.find(({ code }) => code === "part");
  if (!trace || !note) return null;
  const { file } = trace;
  return (
    <p class="part-line" data-testid="part-line">
      <span>{note.message}</span>
      {file.tooLarge.value && (
        <button type="button" class="link" onClick={() => chooseAgain(owners, file)}>
          Choose another part
        </button>
      )}
    </p>
  );
}
