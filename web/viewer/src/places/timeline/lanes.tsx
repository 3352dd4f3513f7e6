// Lanes of items below the timeline. They are laid out for a stretch that is wider than the view.
// Panning and zooming inside a stretch only transform its container.

import { computed, effect, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Range } from "../../client/rank-client.js";
import type { CanvasPlot } from "../../plot/canvas-plot.js";
import type { Plots } from "../../plots.js";
import type { Uses } from "../../stores.js";
import { rove } from "../../views/rove.js";
import { type Dress, LANE, type Laid, type LaneItem, TrackItems } from "./track-items.js";

/** Width of a column in CSS pixels. Narrower items that begin in one column are merged. */
const COLUMN = 6;
/** Stretches begin and end at multiples of these columns, and extend the view by half of them. */
const STEP = 32;
/** Wider items keep their name in view when their start is not, in CSS pixels. */
const STICKY_WIDTH = 60;

/** A range and the number of its columns. */
export type Stretch = Range & { columns: number };

/** The stretch to lay out for a visible range and its width in CSS pixels. */
function stretchOf({ x0, x1 }: Range, width: number): Stretch {
  // A power of two, so that merged items stay the same while the view moves.
  const column = 2 ** Math.ceil(Math.log2(((x1 - x0) / Math.max(1, width)) * COLUMN));
  const step = column * STEP;
  const [from, to] = [Math.floor(x0 / step - 0.5), Math.ceil(x1 / step + 0.5)];
  return { x0: from * step, x1: to * step, columns: (to - from) * STEP };
}

/** The stretch around the visible range of a plot; null without one. */
export function visibleStretch(
  of: ReadonlySignal<CanvasPlot<unknown> | null>,
): ReadonlySignal<Stretch | null> {
  let last: Stretch | null = null;
  return computed(() => {
    const plot = of.value;
    const range = plot?.range.value;
    const width = plot?.labels.value?.plot.width;
    const next = range && width ? stretchOf(range, width) : null;
    if (next?.x0 !== last?.x0 || next?.x1 !== last?.x1) last = next;
    return last;
  });
}

/** The visible range, rounded outwards so that it changes seldom while the view moves. */
export function visibleRange(plots: Plots): ReadonlySignal<Range | null> {
  let last: Range | null = null;
  return computed(() => {
    const range = plots.timeline.value?.range.value;
    const next = range ? rounded(range) : null;
    if (next?.x0 !== last?.x0 || next?.x1 !== last?.x1) last = next;
    return last;
  });
}

function rounded({ x0, x1 }: Range): Range {
  const step = 2 ** Math.floor(Math.log2((x1 - x0) / 32));
  return { x0: Math.floor(x0 / step) * step, x1: Math.ceil(x1 / step) * step };
}

type LanesProperties<I extends LaneItem> = Uses<"plots"> & {
  laid: Laid<I>;
  /** The number of lanes. */
  lanes: number;
  /** A new object dresses all items again. */
  dress: Dress<I>;
  class: string;
  /** The accessible name. */
  label: string;
  /** The accessible name of the items. */
  items: string;
  /** Marks the range of an item that is clicked. */
  mark(item: I): void;
  /** Gets the item under the pointer, or null, and the pointer's place in CSS pixels. */
  point?: (item: I | null, left: number) => void;
  children?: ComponentChildren;
};

export function Lanes<I extends LaneItem>(properties: LanesProperties<I>) {
  const { plots, laid, lanes, dress, label, mark, point, children } = properties;
  const box = useRef<HTMLElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const items = useRef<TrackItems<I>>(null);
  const dressed = useRef(dress);
  useLayoutEffect(() => {
    const [around, inside] = [box.current, list.current];
    if (!around || !inside) return undefined;
    if (items.current?.box !== inside || dressed.current !== dress) {
      inside.replaceChildren();
      items.current = new TrackItems(inside, dress);
      dressed.current = dress;
    }
    const { current } = items;
    current.lay(laid);
    return effect(() => place(plots, current, around, inside));
  }, [plots, laid, dress]);
  const item = (event: MouseEvent) => items.current?.itemOf(event.target);
  const click = (event: MouseEvent) => {
    const clicked = item(event);
    if (clicked) mark(clicked);
  };
  const fit = (event: MouseEvent) => {
    const range = item(event);
    if (range) plots.timeline.peek()?.act((view) => view.fitRange(range.x0, range.x1));
  };
  const move = (event: PointerEvent) => {
    const { left = 0 } = box.current?.getBoundingClientRect() ?? {};
    point?.(item(event) ?? null, event.clientX - left);
  };
  return (
    <section class={properties.class} aria-label={label} ref={box}>
      {children}
      <div
        class="tracks-inner"
        role="toolbar"
        aria-label={properties.items}
        onKeyDown={rove}
        onFocusCapture={({ target, relatedTarget }) =>
          items.current && reveal(plots, items.current, target, relatedTarget)
        }
        onClick={click}
        onDblClick={fit}
        onPointerMove={point && move}
        onPointerLeave={point && (() => point(null, 0))}
        style={{ height: `${lanes * LANE}px` }}
      >
        <div class="tracks-laid" ref={list} />
      </div>
    </section>
  );
}

/** Moves the stretch with the plot. Runs in an effect that tracks the plot. */
function place<I extends LaneItem>(
  plots: Plots,
  items: TrackItems<I>,
  box: HTMLElement,
  list: HTMLElement,
): void {
  const plot = plots.timeline.value;
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
    if (width * whole < STICKY_WIDTH) continue;
    // The name stays at the edge of the view while the item has room for it.
    const hidden = Math.max(0, Math.min(before - left * whole, width * whole - STICKY_WIDTH));
    set(name, "margin-left", `${hidden.toFixed(0)}px`);
  }
}

/**
 * Handles focus on an item outside the view. Moving along a lane pans the view; entering a lane
 * focuses its first visible item instead.
 */
function reveal<I extends LaneItem>(
  plots: Plots,
  items: TrackItems<I>,
  to: EventTarget | null,
  from: EventTarget | null,
): void {
  const plot = plots.timeline.peek();
  const range = plot?.range.peek();
  const item = items.itemOf(to);
  if (!plot || !range || !item) return;
  const isIn = ({ x0, x1 }: LaneItem) => x1 > range.x0 && x0 < range.x1;
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
