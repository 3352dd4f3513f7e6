// The timeline view: the plot with its toolbar, labels, marks, minimap and warnings.

import { useEffect } from "preact/hooks";
import { TRACK_IDS, TRACKS } from "../places/index.js";
import type { Surface } from "../plot/surface.js";
import { TimelinePlot } from "../plot/timeline-plot.js";
import type { Plots } from "../plots.js";
import type { Selection } from "../selection.js";
import type { Uses } from "../stores.js";
import { AxisLabels } from "./axis-labels.js";
import { Canvas } from "./canvas.js";
import { HintStrip } from "./hint-strip.js";
import { Icon } from "./icons.js";
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
  const isEmpty = selection.trace.value?.device === null;
  const views = isEmpty ? null : workspace.value;
  useEffect(() => announceHovered({ selection, status }), [selection, status]);
  return (
    <div class="timeline">
      {!isEmpty && (
        <div class="toolbar">
          {views && <views.ui.TimelineTools />}
          <PeakValue selection={selection} />
        </div>
      )}
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
      {views && navigation.tracks.value.includes("free") && <views.ui.FreeLanes shown />}
      {!isEmpty && <div class="strip">{views && <views.ui.Minimap />}</div>}
      <TrackFolds selection={selection} navigation={navigation} />
      {!isEmpty && <HintStrip navigation={navigation} />}
      <Warnings selection={selection} />
    </div>
  );
}

/** Folds and unfolds the tracks, and opens the lists of the sheet. */
function TrackFolds({ selection, navigation }: Uses<"selection" | "navigation">) {
  if (!selection.trace.value?.device) return null;
  const open = navigation.tracks.value;
  const tracks = selection.visibleTrace.value === null ? [] : TRACK_IDS;
  const fold = (title: string, isOpen: boolean, toggle: () => void) => (
    <button key={title} type="button" class="button plain" aria-expanded={isOpen} onClick={toggle}>
      <Icon name={isOpen ? "down" : "forward"} /> {title}
    </button>
  );
  return (
    <fieldset class="track-fold">
      <legend class="visually-hidden">Tracks and lists</legend>
      {tracks.map((track) =>
        fold(TRACKS[track], open.includes(track), () => navigation.toggleTrack(track)),
      )}
      {fold("Lists", navigation.sheet.value !== null, () => navigation.toggleSheet())}
    </fieldset>
  );
}

/** The peak of the trace. */
function PeakValue({ selection }: Uses<"selection">) {
  const peak = selection.trace.value?.device?.peak;
  if (!peak) return null;
  return (
    <span class="peak-value" title={peak.exact}>
      peak{" "}
      <b data-testid="peak-value" data-value={peak.raw}>
        {peak.text}
      </b>
    </span>
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
