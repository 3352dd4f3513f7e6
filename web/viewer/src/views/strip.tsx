// Below the timeline: annotated ranges, and the whole course with a brush over what is in view.

import { useComputed } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { MINIMAP } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Tracks } from "./tracks.js";
import type { Workspace } from "./workspace.js";

export function Strip({ session, workspace }: { session: Session; workspace: Workspace }) {
  return (
    <>
      <Tracks session={session} workspace={workspace} />
      <Minimap session={session} workspace={workspace} />
    </>
  );
}

function Minimap({ session, workspace }: { session: Session; workspace: Workspace }) {
  const course = workspace.course.value.value;
  const axis = session.shown.value?.axis;
  // Labels come anew with every frame of a picture that moves; where the plot lies does not.
  const left = useComputed(() => session.plot.value?.labels.value?.plot.left).value;
  const room = useComputed(() => session.plot.value?.labels.value?.plot.width).value;
  const box = useRef<SVGSVGElement>(null);
  const grip = useRef<{ x: number; x0: number; x1: number; mode: "move" | "new" } | null>(null);
  const paths = useMemo(
    () =>
      course && (
        <>
          <path class="minimap-fill" d={course.requested} />
          <path class="minimap-line" d={course.reserved} />
        </>
      ),
    [course],
  );
  if (!axis || left === undefined || room === undefined) return <div class="minimap" />;
  const [width, height] = MINIMAP;
  const part = (slot: number) => Math.max(0, Math.min(1, slot / axis.extent)) * width;
  const slotAt = (event: PointerEvent) => {
    const { left, width: pixels } = box.current?.getBoundingClientRect() ?? { left: 0, width: 1 };
    return (Math.max(0, Math.min(pixels, event.clientX - left)) / pixels) * axis.extent;
  };
  const down = (event: PointerEvent) => {
    const range = session.plot.peek()?.range.peek();
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
    if (held.mode === "move") session.plot.peek()?.setRange({ x0: held.x0 + by, x1: held.x1 + by });
    else if (by !== 0)
      session.plot.peek()?.setRange({ x0: Math.min(x, held.x), x1: Math.max(x, held.x) });
  };
  const marks = (course?.marks ?? []).filter(({ kind }) => kind !== "peak");
  const cursor = workspace.moment.value.value?.spans.find(({ kind }) => kind === axis.kind);
  return (
    <div class="minimap" style={{ "--left": `${left}px`, "--width": `${room}px` }}>
      <svg
        ref={box}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label="The whole trace, with what is in view"
        data-testid="minimap"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={() => (grip.current = null)}
        onPointerCancel={() => (grip.current = null)}
        onDblClick={() => session.plot.peek()?.act((view) => view.fit())}
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
        {cursor && session.linked.cursor.value !== null && (
          <rect class="minimap-cursor" x={part(cursor.x0)} width="1.5" height={height} />
        )}
        <Brush session={session} part={part} />
      </svg>
    </div>
  );
}

/** What of the course is in view: all that moves with the picture. */
function Brush({ session, part }: { session: Session; part(slot: number): number }) {
  const range = session.plot.value?.range.value;
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
