// The timeline view: a canvas that Rust draws on, its texts as real text over it, and in words what there is to know
// when there is nothing to draw.

import { useEffect, useRef } from "preact/hooks";
import { TimelinePlot } from "../plot/timeline-plot.js";
import type { Session } from "../session.js";
import { AxisLabels } from "./axis-labels.js";
import { PlotState } from "./plot-state.js";
import { Tooltip } from "./tooltip.js";
import { Warnings } from "./warnings.js";

/** A pointer that rests this long on a block has it read out. */
const SPEAK_MS = 500;

export function Timeline({ session }: { session: Session }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const views = session.workspace.value;
  const generation = session.canvas.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another canvas is attached anew
  useEffect(() => (canvas.current ? attach(session, canvas.current) : undefined), [session, generation]);
  return (
    <div class="timeline">
      <div class="toolbar">{views ? <views.ui.TimelineTools session={session} workspace={views} /> : null}</div>
      {views && <views.ui.PartLine session={session} />}
      <div class="plot" role="application" aria-roledescription="timeline" aria-label={describe(session)}>
        <canvas
          key={generation}
          ref={canvas}
          data-testid="timeline-canvas"
          tabIndex={0}
          aria-label="Memory timeline: press ? for its keys"
          aria-keyshortcuts="W S A D Enter F 0"
        />
        <AxisLabels plot={session.shown.value && session.plot.value} />
        {views && <views.ui.TimelineMarks session={session} workspace={views} />}
        <Tooltip session={session} plot={session.plot.value} />
        <PlotState session={session} />
      </div>
      <div class="strip" data-tracks={(session.trace.value?.part.annotations ?? 0) > 0}>
        {views && <views.ui.Strip session={session} workspace={views} />}
      </div>
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
      <span class="dim" data-value={device.reservedPeak.raw} title={`peak of reserved, ${device.reservedPeak.exact}`}>
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

/** Gives the canvas to the Rust view, and takes it back. */
function attach(session: Session, canvas: HTMLCanvasElement): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  let plot: TimelinePlot | null = null;

  const size = new ResizeObserver(() => plot?.resize(canvas.clientWidth, canvas.clientHeight));
  const start = async () => {
    await session.modules.view;
    if (signal.aborted) return;
    plot = new TimelinePlot(
      canvas,
      {
        click: (x, y) => void session.selectAt(x, y),
        doubleClick: (x, y) => void session.fitAt(x, y),
        marked: (marked) => session.workspace.peek()?.marked(marked),
        failed: (error) => session.cannotDraw(error),
      },
      session.hand,
    );
    plot.setTheme(session.dark.peek());
    size.observe(canvas);
    plot.resize(canvas.clientWidth, canvas.clientHeight);
    session.plot.value = plot;
  };
  start().catch((error: unknown) => session.cannotDraw(error));

  const lost = (event: Event) => {
    event.preventDefault();
    plot?.contextLost();
  };
  // The GL context can be taken away at any time; the browser gives it back only to those who ask.
  canvas.addEventListener("webglcontextlost", lost, { signal });
  canvas.addEventListener("webglcontextrestored", () => plot?.contextRestored(), { signal });
  // With the keyboard the cursor is in the middle of the plot.
  const pointAtMiddle = () => {
    const point = plot?.focusPoint();
    if (point && canvas.matches(":focus-visible")) plot?.point(point.x, point.y);
  };
  canvas.addEventListener("focus", pointAtMiddle, { signal });
  canvas.addEventListener("blur", () => plot?.clearHover(), { signal });
  const silence = speak(session);

  return () => {
    gone.abort();
    size.disconnect();
    silence();
    session.plot.value = null;
    plot?.destroy();
  };
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
