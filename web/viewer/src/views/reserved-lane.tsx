// Reserved bytes in a strip of their own, where they would leave the stack too little height. The
// worker sends the line for a stretch that is wider than the view.

import { useMemo } from "preact/hooks";
import { RESERVED_HEIGHT } from "../generated/protocol.js";
import type { ViewUses } from "./workspace.js";

export function ReservedLane({ plots, queries }: ViewUses<"plots" | "queries">) {
  const line = queries.reserved.value.value;
  const paths = useMemo(
    () =>
      line && (
        <>
          <path class="reserved-fill" d={`${line.path}V${RESERVED_HEIGHT}H0Z`} />
          <path class="reserved-line" d={line.path} />
        </>
      ),
    [line],
  );
  const plot = plots.timeline.value;
  const range = plot?.range.value;
  const room = plot?.labels.value?.plot;
  if (!line || line.path === "" || !range || !room) return null;
  const across = line.columns / (line.x1 - line.x0);
  const box = [
    (range.x0 - line.x0) * across,
    0,
    Math.max(1e-6, (range.x1 - range.x0) * across),
    RESERVED_HEIGHT,
  ];
  return (
    <figure
      class="reserved-lane"
      data-testid="reserved-lane"
      title={line.title}
      style={{ "--left": `${room.left}px`, "--width": `${room.width}px` }}
    >
      <figcaption data-value={line.top.raw}>
        reserved
        <span>{line.top.text}</span>
      </figcaption>
      <svg viewBox={box.join(" ")} preserveAspectRatio="none" role="img" aria-label={line.title}>
        {paths}
      </svg>
    </figure>
  );
}
