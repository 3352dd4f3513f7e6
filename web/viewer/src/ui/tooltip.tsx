// The tooltip of the block or frame under the pointer.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Labels } from "../../wasm/vramscope_view.js";
import type { Hit } from "../generated/protocol.js";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Uses } from "../stores.js";

/** Distance between pointer and tooltip, in CSS pixels. */
const GAP = 14;
/** An answer that takes longer dims the text of the block before. */
const LATE_MS = 100;

/** The content of a tooltip. */
export type Tip = Pick<Hit, "title" | "bytes" | "site" | "lines" | "color">;

type TooltipProperties = Uses<"appearance"> & { plot: CanvasPlot<Tip> | null };

export function Tooltip({ appearance, plot }: TooltipProperties) {
  const box = useRef<HTMLDivElement>(null);
  /** The room and the size of the shown tip. To measure them on every move would cost a layout. */
  const sizes = useRef({ tip: null as Tip | null, width: 0, height: 0, wide: 0, high: 0 });
  const hover = plot?.hover.value ?? null;
  // Most answers come within a frame. To dim the text for them would style it anew on every move.
  const [late, setLate] = useState(false);
  const stale = hover?.stale ?? false;
  useEffect(() => {
    if (!stale) {
      setLate(false);
      return;
    }
    const timer = setTimeout(() => setLate(true), LATE_MS);
    return () => clearTimeout(timer);
  }, [stale]);

  // Right of and below the pointer; on the other side where there is no room.
  useLayoutEffect(() => {
    const element = box.current;
    const room = element?.parentElement;
    if (!element || !room || !hover) return;
    if (hover.hit === null || sizes.current.tip !== hover.hit)
      sizes.current = {
        tip: hover.hit,
        width: element.offsetWidth,
        height: element.offsetHeight,
        wide: room.clientWidth,
        high: room.clientHeight,
      };
    const { width, height, wide, high } = sizes.current;
    const x = hover.x + GAP + width > wide ? Math.max(0, hover.x - GAP - width) : hover.x + GAP;
    const y = hover.y + GAP + height > high ? Math.max(0, hover.y - GAP - height) : hover.y + GAP;
    element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  });

  if (!plot || !hover) return null;
  const { hit } = hover;
  return (
    <>
      <Cursor x={hover.x} plot={plot.labels.value?.plot} />
      <div class="tooltip" role="tooltip" data-testid="tooltip" data-stale={late} ref={box}>
        {hit ? (
          <>
            <p class="tooltip-title">
              <span class="swatch" style={{ background: appearance.swatch(hit.color) }} />
              <span data-value={hit.bytes.raw}>{hit.title}</span>
            </p>
            {hit.site !== "" && <p>{hit.site}</p>}
            {hit.lines.map((line, index) => (
              <p class="dim" key={index}>
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
