// Below the timeline: annotated ranges, and the minimap of the whole trace with a brush
// over the visible range.

import { useComputed } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { MINIMAP } from "../../generated/protocol.js";
import type { Uses } from "../../stores.js";
import type { ViewUses } from "../../views/workspace.js";
import { Tracks } from "./tracks.js";

type MinimapProperties = ViewUses<
  "selection" | "viewSelection" | "navigation" | "plots" | "appearance" | "queries" | "cards"
>;

export function Minimap(owners: MinimapProperties) {
  return (
    <>
      {owners.navigation.tracks.value.includes("annotations") && <Tracks {...owners} />}
      <Curve {...owners} />
    </>
  );
}

function Curve({ selection, viewSelection, plots, queries }: MinimapProperties) {
  const minimap = queries.minimap.value.value;
  const plot = plots.timeline;
  const axis = selection.visibleTrace.value?.axis;
  // Computed, because labels change with every frame but the place of the plot does not.
  const left = useComputed(() => plot.value?.labels.value?.plot.left).value;
  const room = useComputed(() => plot.value?.labels.value?.plot.width).value;
  const box = useRef<SVGSVGElement>(null);
  const grip = useRef<{ x: number; x0: number; x1: number; mode: "move" | "new" } | null>(null);
  const paths = useMemo(
    () =>
      minimap && (
        <>
          <path class="minimap-fill" d={minimap.requested} />
          <path class="minimap-line" d={minimap.reserved} />
        </>
      ),
    [minimap],
  );
  if (!axis || left === undefined || room === undefined) return <div class="minimap" />;
  const [width, height] = MINIMAP;
  const part = (slot: number) => Math.max(0, Math.min(1, slot / axis.extent)) * width;
  const slotAt = (event: PointerEvent) => {
    const { left, width: pixels } = box.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    return (Math.max(0, Math.min(pixels, event.clientX - left)) / pixels) * axis.extent;
  };
  const down = (event: PointerEvent) => {
    const range = plot.peek()?.range.peek();
    if (event.button !== 0 || !range) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    const x = slotAt(event);
    const whole = range.x0 <= 0 && range.x1 >= axis.extent;
    const inside = x >= range.x0 && x <= range.x1 && !whole && !event.shiftKey;
    grip.current = { x, x0: range.x0, x1: range.x1, mode: inside ? "move" : "new" };
  };
  const move = (event: PointerEvent) => {
    const held = grip.current;
    if (!held) return;
    const x = slotAt(event);
    const by = x - held.x;
    if (held.mode === "move") plot.peek()?.setRange({ x0: held.x0 + by, x1: held.x1 + by });
    else if (by !== 0) plot.peek()?.setRange({ x0: Math.min(x, held.x), x1: Math.max(x, held.x) });
  };
  const marks = (minimap?.marks ?? []).filter(({ kind }) => kind !== "peak");
  const cursor = queries.stateAt.value.value?.spans.find(({ kind }) => kind === axis.kind);
  return (
    <div class="minimap" style={{ "--left": `${left}px`, "--width": `${room}px` }}>
      <svg
        ref={box}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label="Minimap: the whole trace with the visible range"
        data-testid="minimap"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={() => (grip.current = null)}
        onPointerCancel={() => (grip.current = null)}
        onDblClick={() => plot.peek()?.act((view) => view.fit())}
      >
        {paths}
        {marks.map(({ kind, slot, text, id }) => (
          <rect
            key={`${kind} ${slot} ${id}`}
            class="minimap-mark"
            data-kind={kind}
            x={part(slot)}
            width="2"
            height={height}
          >
            <title>{text}</title>
          </rect>
        ))}
        {cursor && viewSelection.cursor.value !== null && (
          <rect class="minimap-cursor" x={part(cursor.x0)} width="1.5" height={height} />
        )}
        <Brush plots={plots} part={part} />
      </svg>
    </div>
  );
}

/** The brush over the visible range: the only part that renders in every frame. */
function Brush({ plots, part }: Uses<"plots"> & { part(slot: number): number }) {
  const range = plots.timeline.value?.range.value;
  if (!range) return null;
  const [width, height] = MINIMAP;
  const [from, to] = [part(range.x0), part(range.x1)];
  return (
    <>
      <rect class="minimap-out" width={from} height={height} />
      <rect class="minimap-out" x={to} width={width - to} height={height} />
      <rect
        class="minimap-brush"
        data-testid="brush"
        x={from}
        width={Math.max(2, to - from)}
        height={height}
      />
    </>
  );
}
