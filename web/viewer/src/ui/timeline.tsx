// The timeline view: the plot with its toolbar, labels, marks, minimap and warnings.

import { useEffect } from "preact/hooks";
import type { Surface } from "../plot/surface.js";
import { TimelinePlot } from "../plot/timeline-plot.js";
import type { Plots } from "../plots.js";
import type { Selection } from "../selection.js";
import type { Uses } from "../stores.js";
import { AxisLabels } from "./axis-labels.js";
import { Canvas } from "./canvas.js";
import { HintStrip } from "./hint-strip.js";
import { PlotState, type PlotStateProperties } from "./plot-state.js";
import { Tooltip } from "./tooltip.js";
import { Warnings } from "./warnings.js";

/** The block under a resting pointer is announced after this time. */
const ANNOUNCE_MS = 500;

const CANVAS = {
  "data-testid": "timeline-canvas",
  tabindex: "0",
  "aria-label": "Memory timeline: press ? for keys",
  "aria-keyshortcuts": "W S A D Enter F 0",
};

export function Timeline(stores: PlotStateProperties & Uses<"appearance" | "navigation">) {
  const { selection, plots, appearance, navigation, status, workspace } = stores;
  const views = workspace.value;
  useEffect(() => announceHovered({ selection, status }), [selection, status]);
  return (
    <div class="timeline">
      <div class="toolbar">{views && <views.ui.TimelineTools />}</div>
      {views && <views.ui.PartLine />}
      {views && <views.ui.PlotHead />}
      <div
        class="plot"
        role="application"
        aria-roledescription="timeline"
        aria-label={describe(selection)}
        onFocusCapture={() => pointAtMiddle(plots)}
      >
        <Canvas
          plots={plots}
          appearance={appearance}
          plot={plots.timeline}
          attributes={CANVAS}
          make={(surface) => plotOf(stores, surface)}
        />
        <AxisLabels plot={selection.visibleTrace.value && plots.timeline.value} />
        {views && <views.ui.TimelineMarks />}
        <Tooltip appearance={appearance} plot={plots.timeline.value} />
        <PlotState {...stores} />
      </div>
      {views && <views.ui.PinnedLanes />}
      <div class="strip">{views && <views.ui.Minimap />}</div>
      <HintStrip navigation={navigation} />
      <Warnings selection={selection} />
    </div>
  );
}

/** The peaks of the trace, beside the tabs. */
export function TimelineFacts({ selection }: Uses<"selection">) {
  const device = selection.trace.value?.device;
  if (!device) return null;
  return (
    <p class="facts">
      <span data-testid="peak-value" data-value={device.peak.raw} title={device.peak.exact}>
        {device.peakText}
      </span>
      <span
        class="dim"
        data-value={device.reservedPeak.raw}
        title={`reserved peak, ${device.reservedPeak.exact}`}
      >
        reserved {device.reservedPeak.text}
      </span>
    </p>
  );
}

/** The plot's label for screen readers. */
function describe(selection: Selection): string {
  const trace = selection.trace.value;
  if (!trace?.device) return "Memory timeline";
  const { label, peakText, events, blocks } = trace.device;
  const name = `Memory timeline of ${trace.file.path}, ${label}`;
  return `${name}: ${peakText}; ${events.exact}, ${blocks.exact}`;
}

function plotOf(
  { selection, plots, workspace }: Uses<"selection" | "plots" | "workspace">,
  surface: Surface,
): TimelinePlot {
  return new TimelinePlot(
    surface,
    {
      click: (x, y) => void selection.selectAt(x, y),
      doubleClick: (x, y) => void selection.fitAt(x, y),
      marked: (marked) => workspace.peek()?.stores.cards.marked(marked),
      failed: (error) => plots.fail(error),
    },
    plots.gestureOptions,
  );
}

/** With the keyboard, the pointer is in the middle of the plot. */
function pointAtMiddle(plots: Plots): void {
  const plot = plots.timeline.peek();
  if (!plot?.canvas.matches(":focus-visible")) return;
  const { x, y } = plot.focusPoint();
  plot.point(x, y);
}

/** Announces the block under a resting pointer. */
function announceHovered({ selection, status }: Uses<"selection" | "status">): () => void {
  let timer = 0;
  const stop = selection.hovered.subscribe((hit) => {
    clearTimeout(timer);
    if (!hit) return;
    timer = setTimeout(() => status.announce(`${hit.title}, ${hit.site}`), ANNOUNCE_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}
