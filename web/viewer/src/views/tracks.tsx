// Annotated ranges below the timeline. They are laid out once for a stretch that is wider than the
// view: panning moves it and zooming widens it, and no element is made or placed anew.

import { effect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Range } from "../client/rank-client.js";
import type { TrackItem } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { rove } from "./rove.js";
import { LANE, TrackItems } from "./track-items.js";
import type { Workspace } from "./workspace.js";

/** Ranges that begin within so many CSS pixels are one item, if none of them is wider. */
const COLUMN = 6;
/**
 * Stretches begin and end at multiples of so many columns, and reach half of that beyond the view.
 */
const STEP = 32;
/** CSS pixels: a wider item shows its name wherever it is cut. */
const LONG = 60;

/** What to lay out for a view that is so many CSS pixels wide. */
export function stretchOf({ x0, x1 }: Range, width: number): Range & { columns: number } {
  // A power of two, so that what is put together does not change while the picture moves.
  const column = 2 ** Math.ceil(Math.log2(((x1 - x0) / Math.max(1, width)) * COLUMN));
  const step = column * STEP;
  const [from, to] = [Math.floor(x0 / step - 0.5), Math.ceil(x1 / step + 0.5)];
  return { x0: from * step, x1: to * step, columns: (to - from) * STEP };
}

export function Tracks({ session, workspace }: { session: Session; workspace: Workspace }) {
  const laid = workspace.tracks.value.value;
  const dark = session.dark.value;
  const box = useRef<HTMLElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const items = useRef<TrackItems>(null);
  const anything = laid !== null && laid.lanes > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: colors depend on the theme
  useLayoutEffect(() => {
    const [around, inside] = [box.current, list.current];
    if (!around || !inside || !laid || !anything) return undefined;
    if (items.current?.box !== inside) items.current = new TrackItems(inside);
    const { current } = items;
    current.lay(laid, (color) => session.swatch(color));
    return effect(() => place(session, current, around, inside));
  }, [session, laid, dark]);
  if (!anything) return null;
  const item = (event: MouseEvent) => items.current?.itemOf(event.target);
  const mark = (event: MouseEvent) => {
    const range = item(event);
    if (range) void workspace.selectRange(range.x0, range.x1);
  };
  const fit = (event: MouseEvent) => {
    const range = item(event);
    if (range) session.plot.peek()?.act((view) => view.fitRange(range.x0, range.x1));
  };
  return (
    <section class="tracks" aria-label="Annotations" ref={box}>
      <div
        class="tracks-inner"
        role="toolbar"
        aria-label="Annotated ranges"
        onKeyDown={rove}
        onFocusCapture={({ target, relatedTarget }) =>
          items.current && reveal(session, items.current, target, relatedTarget)
        }
        onClick={mark}
        onDblClick={fit}
        style={{ height: `${laid.lanes * LANE}px` }}
      >
        <div class="tracks-laid" ref={list} />
      </div>
    </section>
  );
}

/** Moves the stretch to where the plot is. What it reads of the plot has it called again. */
function place(session: Session, items: TrackItems, box: HTMLElement, list: HTMLElement): void {
  const plot = session.plot.value;
  const range = plot?.range.value;
  const room = plot?.labels.value?.plot;
  if (!range || !room) return;
  const scale = room.width / (range.x1 - range.x0);
  const set = (element: HTMLElement, name: string, value: string) => {
    if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
  };
  const { ground } = items;
  const whole = ground.width * scale;
  const before = (range.x0 - ground.x0) * scale;
  set(box, "--left", `${room.left}px`);
  set(box, "--width", `${room.width}px`);
  set(list, "width", `${whole.toFixed(2)}px`);
  set(list, "transform", `translateX(${(-before).toFixed(2)}px)`);
  for (const { left, width, name } of items.named()) {
    if (width * whole < LONG) continue;
    // The name stays at the edge of the view for as long as there is something of the item behind
    // it.
    const hidden = Math.max(0, Math.min(before - left * whole, width * whole - LONG));
    set(name, "margin-left", `${hidden.toFixed(0)}px`);
  }
}

/**
 * Keys can go to what is laid out and not in view: along a lane the picture goes along, into one to
 * the first in view.
 */
function reveal(
  session: Session,
  items: TrackItems,
  to: EventTarget | null,
  from: EventTarget | null,
): void {
  const plot = session.plot.peek();
  const range = plot?.range.peek();
  const item = items.itemOf(to);
  if (!plot || !range || !item) return;
  const isIn = ({ x0, x1 }: TrackItem) => x1 > range.x0 && x0 < range.x1;
  if (isIn(item)) return;
  const before = items.itemOf(from);
  const first = items.find((each) => isIn(each) && (!before || each.lane === item.lane));
  if (before?.lane === item.lane || !first) {
    const by =
      item.x0 < range.x0 ? item.x0 - range.x0 : Math.min(item.x0 - range.x0, item.x1 - range.x1);
    plot.setRange({ x0: range.x0 + by, x1: range.x1 + by });
  } else {
    first.focus();
  }
}
