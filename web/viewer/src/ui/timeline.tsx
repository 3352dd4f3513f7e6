// The timeline view: a canvas that Rust draws on, its texts as real text over it, and in words what
// there is to know when there is nothing to draw.

import { useEffect } from "preact/hooks";
import type { Surface } from "../plot/surface.js";
import { TimelinePlot } from "../plot/timeline-plot.js";
import type { Session } from "../session.js";
import { AxisLabels } from "./axis-labels.js";
import { Canvas } from "./canvas.js";
import { PlotState } from "./plot-state.js";
import { Tooltip } from "./tooltip.js";
import { Warnings } from "./warnings.js";

/** A pointer that rests this long on a block has it read out. */
const SPEAK_MS = 500;

const CANVAS = {
  "data-testid": "timeline-canvas",
  tabindex: "0",
  "aria-label": "Memory timeline: press ? for its keys",
  "aria-keyshortcuts": "W S A D Enter F 0",
};

export function Timeline({ session }: { session: Session }) {
  const views = session.workspace.value;
  useEffect(() => speak(session), [session]);
  return (
    <div class="timeline">
      <div class="toolbar">
        {views ? <views.ui.TimelineTools session={session} workspace={views} /> : null}
      </div>
      {views && <views.ui.PartLine session={session} />}
      <div
        class="plot"
        role="application"
        aria-roledescription="timeline"
        aria-label={describe(session)}
        onFocusCapture={() => pointAtMiddle(session)}
      >
        <Canvas
          session={session}
          plot={session.plot}
          attributes={CANVAS}
          make={(surface) => plotOf(session, surface)}
        />
        <AxisLabels plot={session.shown.value && session.plot.value} />
        {views && <views.ui.TimelineMarks session={session} workspace={views} />}
        <Tooltip session={session} plot={session.plot.value} />
        <PlotState session={session} />
      </div>
      <div class="strip">{views && <views.ui.Strip session={session} workspace={views} />}</div>
      <Warnings session={session} />
    </div>
  );
}

/** The numbers of the trace, beside the tabs. */
export function TimelineFacts({ session }: { session: Session }) {
  const device = session.trace.value?.device;
  if (!device) return null;
  return (
    <p class="facts">
      <span data-testid="peak-value" data-value={device.peak.raw} title={device.peak.exact}>
        {device.peakText}
      </span>
      <span
        class="dim"
        data-value={device.reservedPeak.raw}
        title={`peak of reserved, ${device.reservedPeak.exact}`}
      >
        reserved {device.reservedPeak.text}
      </span>
    </p>
  );
}

/** What a screen reader says of the canvas. */
function describe(session: Session): string {
  const trace = session.trace.value;
  if (!trace?.device) return "Memory timeline";
  const { label, peakText, events, blocks } = trace.device;
  return `Memory timeline of ${trace.file.path}, ${label}: ${peakText}; ${events.exact}, ${blocks.exact}`;
}

function plotOf(session: Session, surface: Surface): TimelinePlot {
  return new TimelinePlot(
    surface,
    {
      click: (x, y) => void session.selectAt(x, y),
      doubleClick: (x, y) => void session.fitAt(x, y),
      marked: (marked) => session.workspace.peek()?.marked(marked),
      failed: (error) => session.cannotDraw(error),
    },
    session.hand,
  );
}

/** With the keyboard the cursor is in the middle of the plot. */
function pointAtMiddle(session: Session): void {
  const plot = session.plot.peek();
  if (!plot?.canvas.matches(":focus-visible")) return;
  const { x, y } = plot.focusPoint();
  plot.point(x, y);
}

/** Reads out what the cursor rests on. */
function speak(session: Session): () => void {
  let waiting = 0;
  const stop = session.hovered.subscribe((hit) => {
    clearTimeout(waiting);
    if (!hit) return;
    waiting = setTimeout(() => {
      session.spoken.value = `${hit.title}, ${hit.site}`;
    }, SPEAK_MS);
  });
  return () => {
    clearTimeout(waiting);
    stop();
  };
}
