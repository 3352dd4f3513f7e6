// The simulated reserved bytes as a line over the timeline. The worker sends the line for a stretch
// that is wider than the view; panning and zooming inside it only change the box that is shown.

import { useMemo } from "preact/hooks";
import { SIMULATED_HEIGHT } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

export function SimulatedLine({ plots, levers }: ViewUses<"plots" | "levers">) {
  const curve = levers.curve.value.value;
  const path = useMemo(() => curve && <path d={curve.path} />, [curve]);
  const plot = plots.timeline.value;
  const range = plot?.range.value;
  const heights = plot?.heights.value;
  const room = plot?.labels.value?.plot;
  if (!curve || curve.path === "" || !range || !heights || !room) return null;
  const across = curve.columns / (curve.x1 - curve.x0);
  const up = SIMULATED_HEIGHT / curve.top;
  const box = [
    (range.x0 - curve.x0) * across,
    SIMULATED_HEIGHT - heights.y1 * up,
    (range.x1 - range.x0) * across,
    (heights.y1 - heights.y0) * up,
  ];
  return (
    <svg
      class="simulated"
      data-testid="simulated-line"
      viewBox={box.join(" ")}
      preserveAspectRatio="none"
      aria-hidden="true"
      style={{
        left: `${room.left}px`,
        top: `${room.top}px`,
        width: `${room.width}px`,
        height: `${room.height}px`,
      }}
    >
      {path}
    </svg>
  );
}
