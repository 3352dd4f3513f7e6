// The browser's own scrollbar beside a plot whose rows do not fit.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";

/** Maximum content height in bar heights: browsers limit boxes to about ten million pixels. */
const MAX_HEIGHTS = 8000;

interface RowsBarProperties {
  plot: CanvasPlot<unknown> | null;
  /** Height of all rows, in row units. */
  units: number;
}

export function RowsBar({ plot, units }: RowsBarProperties) {
  const bar = useRef<HTMLDivElement>(null);
  // Setting the position also fires a scroll event.
  const set = useRef(0);
  const heights = plot?.heights.value;
  const inView = heights ? heights.y1 - heights.y0 : units;
  // A row has thousands of units: less than one is a rounding error.
  const hidden = Math.floor(units - inView);
  useLayoutEffect(() => {
    const { current } = bar;
    if (!current || !heights || hidden <= 0) return;
    current.scrollTop =
      ((units - heights.y1) / hidden) * (current.scrollHeight - current.clientHeight);
    set.current = current.scrollTop;
  }, [heights, units, hidden]);
  if (hidden <= 0) return null;
  const scrolled = ({ scrollTop, scrollHeight, clientHeight }: HTMLElement) => {
    if (Math.abs(scrollTop - set.current) < 1) return;
    set.current = scrollTop;
    const y1 = units - (scrollTop / (scrollHeight - clientHeight)) * hidden;
    plot?.act((view) => view.setView({ ...view.getView(), y0: y1 - inView, y1 }));
  };
  return (
    <div
      class="rows-bar"
      ref={bar}
      data-testid="rows-bar"
      aria-hidden="true"
      tabIndex={-1}
      onScroll={(event) => scrolled(event.currentTarget)}
    >
      <div style={{ height: `${Math.min(units / inView, MAX_HEIGHTS) * 100}%` }} />
    </div>
  );
}
