// HTML that moves with a plot: names in a flame graph, marks on a timeline. The Rust view computes
// the places.

import type { ComponentChildren, CSSProperties } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import { rove } from "./rove.js";

/** A rectangle in data units. Without `y` it has the whole height. */
export interface Box {
  x0: number;
  x1: number;
  y?: [number, number] | null;
}

/** The place of a box in CSS pixels of the canvas. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface OverlayProperties<B extends Box> {
  plot: CanvasPlot<unknown> | null;
  items: readonly B[];
  class: string;
  /** The label for screen readers. */
  label: string;
  children: (item: B, place: Place, index: number) => ComponentChildren;
}

/** Numbers per place in the plot's `boxes`. */
const NUMBERS = 5;

export function Overlay<B extends Box>({
  plot,
  items,
  class: name,
  label,
  children,
}: OverlayProperties<B>) {
  useLayoutEffect(() => {
    if (!plot) return;
    const boxes = new Float64Array(items.length * 4);
    items.forEach(({ x0, x1, y }, index) => {
      boxes.set([x0, x1, y?.[0] ?? Number.NaN, y?.[1] ?? Number.NaN], index * 4);
    });
    plot.setBoxes(boxes);
  }, [plot, items]);
  const places = plot?.boxes.value;
  const shown: ComponentChildren[] = [];
  for (let at = 0; places && at + NUMBERS <= places.length; at += NUMBERS) {
    const [index = 0, left = 0, top = 0, width = 0, height = 0] = places.subarray(at, at + NUMBERS);
    const item = items[index];
    if (item) shown.push(children(item, { left, top, width, height }, index));
  }
  return (
    <div class={`overlay ${name}`} role="toolbar" aria-label={label} onKeyDown={rove}>
      {shown}
    </div>
  );
}

/** A place as CSS. */
export function placed({ left, top, width, height }: Place): CSSProperties {
  return {
    transform: `translate(${left}px, ${top}px)`,
    width: `${width}px`,
    height: `${height}px`,
  };
}
