// A scrollbar beside a plot whose rows do not fit in: the browser's own, so that it is dragged and
// turned as any other.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";

/** Times the bar's height: browsers know no taller boxes than some ten million pixels. */
const TALLEST = 8000;

interface RowsBarProperties {
  plot: CanvasPlot<unknown> | null;
  /** The height of all rows. */
  units: number;
}

export function RowsBar({ plot, units }: RowsBarProperties) {
  const bar = useRef<HTMLDivElement>(null);
  // What is set here is told as a scroll too.
  const set = useRef(0);
  const heights = plot?.heights.value;
  const inView = heights ? heights.y1 - heights.y0 : units;
  // Less than a unit, of which a row has thousands, is rounding.
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
      <div style={{ height: `${Math.min(units / inView, TALLEST) * 100}%` }} />
    </div>
  );
}
