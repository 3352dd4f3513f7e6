// The tooltip of the block or frame under the pointer.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Labels } from "../../wasm/vramscope_view.js";
import type { Hit } from "../generated/protocol.js";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Uses } from "../stores.js";

/** Distance between pointer and tooltip, in CSS pixels. */
const GAP = 14;

/** The content of a tooltip. */
export type Tip = Pick<Hit, "title" | "bytes" | "site" | "lines" | "color">;

type TooltipProperties = Uses<"appearance"> & { plot: CanvasPlot<Tip> | null };

export function Tooltip({ appearance, plot }: TooltipProperties) {
  const box = useRef<HTMLDivElement>(null);
  const hover = plot?.hover.value ?? null;

  // Right of and below the pointer; on the other side where there is no room.
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
              <span class="swatch" style={{ background: appearance.swatch(hit.color) }} />
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

/** A vertical line through the plot at the pointer. */
function Cursor({ x, plot }: { x: number; plot: Labels["plot"] | undefined }) {
  if (!plot) return null;
  const place = {
    "--x": `${Math.round(x)}px`,
    "--y": `${plot.top}px`,
    "--height": `${plot.height}px`,
  };
  return <div class="cursor" aria-hidden="true" style={place} />;
}
