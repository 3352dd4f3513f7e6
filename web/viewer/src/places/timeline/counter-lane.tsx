// Bytes over time in strips of their own: reserved bytes where they would leave the stack too
// little height, bytes that are never read again, and the largest free pieces. The worker sends
// lines for a stretch that is wider than the view.

import { useMemo } from "preact/hooks";
import { COUNTER_HEIGHT, type CounterLine } from "../../generated/protocol.js";
import type { CanvasPlot } from "../../plot/canvas-plot.js";
import type { ViewUses } from "../../views/workspace.js";

interface LaneProperties {
  /** The plot whose x axis the lane shares. */
  plot: CanvasPlot<unknown> | null;
  line: CounterLine;
  kind: "reserved" | "free" | "dead";
}

export function CounterLane({ plot, line, kind }: LaneProperties) {
  const paths = useMemo(
    () => (
      <>
        {/* The strip of dead bytes is hatched: what is above the line is covered. */}
        <path class="counter-fill" d={`${line.path}V${kind === "dead" ? 0 : COUNTER_HEIGHT}H0Z`} />
        <path class="counter-line" d={line.path} />
      </>
    ),
    [line, kind],
  );
  const range = plot?.range.value;
  const room = plot?.labels.value?.plot;
  if (line.path === "" || !range || !room) return null;
  const shown = line.at ?? line.top;
  const across = line.columns / (line.x1 - line.x0);
  const box = [
    (range.x0 - line.x0) * across,
    0,
    Math.max(1e-6, (range.x1 - range.x0) * across),
    COUNTER_HEIGHT,
  ];
  return (
    <figure
      class="counter-lane"
      data-kind={kind}
      data-testid={`${kind}-lane`}
      data-value={line.top.raw}
      title={line.title}
      style={{ "--left": `${room.left}px`, "--width": `${room.width}px` }}
    >
      <figcaption data-value={shown.raw}>
        {line.name}
        <span>{shown.text}</span>
      </figcaption>
      <svg viewBox={box.join(" ")} preserveAspectRatio="none" role="img" aria-label={line.title}>
        {paths}
      </svg>
    </figure>
  );
}

export function ReservedLane({ plots, queries }: ViewUses<"plots" | "queries">) {
  const line = queries.reserved.value.value;
  return line && <CounterLane plot={plots.timeline.value} line={line} kind="reserved" />;
}

export function DeadLane({ plots, queries }: ViewUses<"plots" | "queries">) {
  const line = queries.dead.value.value;
  return line && <CounterLane plot={plots.timeline.value} line={line} kind="dead" />;
}
