// What is under the pointer. It lies over the plot and never takes part in its layout.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Labels } from "../../wasm/vramscope_view.js";
import type { Hit } from "../generated/protocol.js";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";

/** Between the pointer and the box. */
const GAP = 14;

/** What a tooltip needs to know of what it is about. */
export type Tip = Pick<Hit, "title" | "bytes" | "site" | "lines" | "color">;

export function Tooltip({ session, plot }: { session: Session; plot: CanvasPlot<Tip> | null }) {
  const box = useRef<HTMLDivElement>(null);
  const hover = plot?.hover.value ?? null;

  // To the right and below, and on the other side of the pointer where there is no room.
  useLayoutEffect(() => {
    const element = box.current;
    const room = element?.parentElement;
    if (!element || !room || !hover) return;
    const { offsetWidth: width, offsetHeight: height } = element;
    const x =
      hover.x + GAP + width > room.clientWidth ? Math.max(0, hover.x - GAP - width) : hover.x + GAP;
    const y =
      hover.y + GAP + height > room.clientHeight
        ? Math.max(0, hover.y - GAP - height)
        : hover.y + GAP;
    element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  });

  if (!plot || !hover) return null;
  const { hit } = hover;
  return (
    <>
      <Cursor x={hover.x} plot={plot.labels.value?.plot} />
      <div class="tooltip" role="tooltip" data-testid="tooltip" data-stale={hover.stale} ref={box}>
        {hit ? (
          <>
            <p class="tooltip-title">
              <span class="swatch" style={{ background: session.swatch(hit.color) }} />
              <span data-value={hit.bytes.raw}>{hit.title}</span>
            </p>
            {hit.site !== "" && <p class="mono">{hit.site}</p>}
            {hit.lines.map((line) => (
              <p class="dim" key={line}>
                {line}
              </p>
            ))}
          </>
        ) : (
          <p class="tooltip-title">…</p>
        )}
      </div>
    </>
  );
}

/** A line through the plot, so that the eye finds the tick. */
function Cursor({ x, plot }: { x: number; plot: Labels["plot"] | undefined }) {
  if (!plot) return null;
  const place = {
    "--x": `${Math.round(x)}px`,
    "--y": `${plot.top}px`,
    "--height": `${plot.height}px`,
  };
  return <div class="cursor" aria-hidden="true" style={place} />;
}
