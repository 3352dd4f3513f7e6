// Annotated ranges below the timeline. They are laid out once for a stretch that is wider than the view: panning moves it
// and zooming widens it, and no element is made or placed anew.

import { effect } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Range } from "../client/rank-client.js";
import type { Tracks as Laid, TrackItem } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { rove } from "./rove.js";
import type { Workspace } from "./workspace.js";

/** CSS pixels of a lane. */
const LANE = 15;
/** Ranges that begin within so many CSS pixels are one item, if none of them is wider. */
const COLUMN = 6;
/** Stretches begin and end at multiples of so many columns, and reach a quarter of that beyond the view. */
const STEP = 64;
/** Columns that an item takes at least to show its name. */
const NAMED = 4;
/** CSS pixels: a wider item shows its name wherever it is cut. */
const LONG = 60;

/** What to lay out for a view that is so many CSS pixels wide. */
export function stretchOf({ x0, x1 }: Range, width: number): Range & { columns: number } {
  // A power of two, so that what is put together does not change while the picture moves.
  const column = 2 ** Math.ceil(Math.log2(((x1 - x0) / Math.max(1, width)) * COLUMN));
  const step = column * STEP;
  const [from, to] = [Math.floor(x0 / step - 0.25), Math.ceil(x1 / step + 0.25)];
  return { x0: from * step, x1: to * step, columns: (to - from) * STEP };
}

/** What all items are placed in. It is far wider than a stretch, so that those of the next stretch stay where they are. */
interface Ground {
  x0: number;
  width: number;
}

function groundOf({ x0, x1, columns }: Laid): Ground {
  const width = ((x1 - x0) / columns) * 2 ** 14;
  return { x0: Math.floor(x0 / width) * width, width };
}

/** What of an item is laid out, as parts of the ground. */
function part({ x0, x1 }: TrackItem, laid: Laid, ground: Ground): { left: number; width: number } {
  const from = Math.max(laid.x0, x0);
  return { left: (from - ground.x0) / ground.width, width: Math.max(0, Math.min(laid.x1, x1) - from) / ground.width };
}

export function Tracks({ session, workspace }: { session: Session; workspace: Workspace }) {
  const laid = workspace.tracks.value.value;
  const dark = session.dark.value;
  const box = useRef<HTMLElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [around, items] = [box.current, list.current];
    return around && items && laid ? effect(() => place(session, laid, around, items)) : undefined;
  }, [session, laid]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what colour a word is depends on the theme
  const buttons = useMemo(() => laid && itemButtons(session, workspace, laid), [session, workspace, laid, dark]);
  if (!laid || laid.lanes === 0) return null;
  const focused = ({ target, relatedTarget }: FocusEvent) => reveal(session, laid, list.current, target, relatedTarget);
  return (
    <section class="tracks" aria-label="Annotations" ref={box}>
      <div
        class="tracks-inner"
        role="toolbar"
        aria-label="Annotated ranges"
        onKeyDown={rove}
        onFocusCapture={focused}
        style={{ height: `${laid.lanes * LANE}px` }}
      >
        <div class="tracks-laid" ref={list}>
          {buttons}
        </div>
      </div>
    </section>
  );
}

function itemButtons(session: Session, workspace: Workspace, laid: Laid) {
  const ground = groundOf(laid);
  const named = ((laid.x1 - laid.x0) / laid.columns) * NAMED;
  return laid.items.map((item) => {
    const { x0, x1, lane, text, title, colour } = item;
    const { left, width } = part(item, laid, ground);
    const hue = session.swatch(colour);
    return (
      <button
        type="button"
        key={`${lane} ${x0} ${text}`}
        class="track"
        title={title}
        aria-label={text}
        tabIndex={item === laid.items[0] ? 0 : -1}
        style={{ left: `${left * 100}%`, width: `${width * 100}%`, top: `${lane * LANE}px`, "--hue": hue }}
        onClick={() => void workspace.selectRange(x0, x1)}
        onDblClick={() => session.plot.peek()?.act((view) => view.fitRange(x0, x1))}
      >
        {x1 - x0 >= named && <span>{text}</span>}
      </button>
    );
  });
}

/** Moves the stretch to where the plot is. What it reads of the plot has it called again. */
function place(session: Session, laid: Laid, box: HTMLElement, list: HTMLElement): void {
  const plot = session.plot.value;
  const range = plot?.range.value;
  const room = plot?.labels.value?.plot;
  if (!range || !room) return;
  const scale = room.width / (range.x1 - range.x0);
  const set = (element: HTMLElement, name: string, value: string) => {
    if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
  };
  const ground = groundOf(laid);
  const whole = ground.width * scale;
  const before = (range.x0 - ground.x0) * scale;
  set(box, "--left", `${room.left}px`);
  set(box, "--width", `${room.width}px`);
  set(list, "width", `${whole.toFixed(2)}px`);
  set(list, "transform", `translateX(${(-before).toFixed(2)}px)`);
  laid.items.forEach((item, index) => {
    const { left, width } = part(item, laid, ground);
    const text = width * whole < LONG ? null : list.children[index]?.firstElementChild;
    if (!(text instanceof HTMLElement)) return;
    // The name stays at the edge of the view for as long as there is something of the item behind it.
    const hidden = Math.max(0, Math.min(before - left * whole, width * whole - LONG));
    set(text, "margin-left", `${hidden.toFixed(0)}px`);
  });
}

/** Keys can go to what is laid out and not in view: along a lane the picture goes along, into one to the first in view. */
function reveal(
  session: Session,
  laid: Laid,
  list: HTMLElement | null,
  to: EventTarget | null,
  from: EventTarget | null,
): void {
  const plot = session.plot.peek();
  const range = plot?.range.peek();
  const buttons = [...(list?.children ?? [])];
  const itemOf = (target: EventTarget | null) => laid.items[buttons.indexOf(target as Element)];
  const item = itemOf(to);
  if (!plot || !range || !item) return;
  const isIn = ({ x0, x1 }: TrackItem) => x1 > range.x0 && x0 < range.x1;
  if (isIn(item)) return;
  const before = itemOf(from);
  const first = buttons[laid.items.findIndex((each) => isIn(each) && (!before || each.lane === item.lane))];
  if (before?.lane === item.lane || !(first instanceof HTMLElement)) {
    const by = item.x0 < range.x0 ? item.x0 - range.x0 : Math.min(item.x0 - range.x0, item.x1 - range.x1);
    plot.setRange({ x0: range.x0 + by, x1: range.x1 + by });
  } else {
    first.focus();
  }
}
