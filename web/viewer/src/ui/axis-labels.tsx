// Axis ticks and the peak label as text over the canvas, placed by the Rust view.

import type { CanvasPlot } from "../plot/canvas-plot.js";

/** Reads the labels itself, so that only it renders in every frame. */
export function AxisLabels({ plot: of }: { plot: CanvasPlot<unknown> | null }) {
  const labels = of?.labels.value;
  if (!labels) return null;
  const { x, y, peak, plot } = labels;
  const bottom = plot.top + plot.height;
  return (
    <div class="axis" aria-hidden="true">
      {y.map(({ pos, text }) => (
        <span class="tick-y" key={text} style={{ "--y": `${pos}px`, "--x": `${plot.left}px` }}>
          {text}
        </span>
      ))}
      {x.map(({ pos, text }) => (
        <span class="tick-x" key={text} style={{ "--x": `${pos}px`, "--y": `${bottom}px` }}>
          {text}
        </span>
      ))}
      {peak && (
        <span class="peak-mark" style={{ "--x": `${peak.x}px`, "--y": `${peak.y}px` }}>
          {peak.text}
        </span>
      )}
    </div>
  );
}
