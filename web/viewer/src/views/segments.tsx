// The segments view: a row a place in memory with the segments that were there through their lives,
// locked to the timeline's x axis.

import { computed, effect, signal, untracked } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Range } from "../client/rank-client.js";
import type { SegmentRow, SegmentSort, SegmentSpec } from "../generated/protocol.js";
import type { CanvasPlot, Heights } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";
import { AxisLabels } from "../ui/axis-labels.js";
import { Canvas } from "../ui/canvas.js";
import { RowsBar } from "../ui/rows-bar.js";
import { Tooltip } from "../ui/tooltip.js";
import { NoPicture } from "../ui/words.js";
import { Choice } from "./controls.js";
import { DraftBox } from "./marks.js";
import { type Box, Overlay, placed } from "./overlay.js";
import { PictureButtons } from "./picture-buttons.js";
import { endAll, resource } from "./resource.js";
import { saveTable } from "./save.js";
import { LAST } from "./segment-card.js";
import { SegmentsPlot } from "./segments-plot.js";
import type { ViewProperties } from "./ui.js";
import type { Workspace } from "./workspace.js";

const BRIEF =
  "A segment that comes and goes within a pixel is drawn as it was when what it was reserved for was allocated";

const SORTS: readonly (readonly [SegmentSort, string])[] = [
  ["size", "size"],
  ["address", "address"],
  ["pool", "pool"],
  ["occupancy", "emptiest at the cursor"],
];

const sameRange = (a: Range | null, b: Range | null) => a?.x0 === b?.x0 && a?.x1 === b?.x1;

/**
 * One plot goes where another one is; slots of events are no slots of time, so both must be along
 * one axis.
 */
function follow(plot: CanvasPlot<unknown> | null, range: Range): void {
  if (plot && !sameRange(range, plot.range.peek())) plot.setRange(range);
}

/**
 * The heights that rows are asked for: some screens of them, and the same ones while the view stays
 * among them.
 */
function stretch({ y0, y1 }: Heights): Heights {
  const page = 2 ** Math.ceil(Math.log2(y1 - y0));
  const middle = Math.round((y0 + y1) / 2 / page) * page;
  return { y0: middle - 1.5 * page, y1: middle + 1.5 * page };
}

/** The state of the view, and what keeps it and the timeline together. */
function open(session: Session, workspace: Workspace) {
  const plot = workspace.segments;
  const grown = signal<number | null>(null);
  const { linked } = session;
  const spec = (): SegmentSpec => {
    const sort = linked.segmentSort.value;
    // Only this order depends on the cursor: the others must not be asked for again when it moves.
    const event = sort === "occupancy" ? (linked.cursor.value ?? -1) : -1;
    return { sort, event, grown: grown.value };
  };
  const info = resource(session, "segments", () => ({ segments: { rows: spec() } }));
  let asked: Heights | null = null;
  const near = computed(() => {
    const heights = plot.value?.heights.value;
    const next = heights ? stretch(heights) : null;
    if (next?.y0 !== asked?.y0 || next?.y1 !== asked?.y1) asked = next;
    return asked;
  });
  const rows = resource(session, "segmentRows", () =>
    near.value ? { segmentRows: { rows: spec(), ...near.value } } : null,
  );
  const stop = [
    () => info.stop(),
    () => rows.stop(),
    effect(() => {
      const shown = session.drawn.value;
      const all = info.value.value;
      const look = all && {
        color: linked.color.value,
        search: linked.search.value,
        spec: untracked(spec),
        info: all,
      };
      plot.value?.show(shown, look);
      // Not as the timeline was at its last frame: where it has been sent since would be lost when
      // this is drawn first.
      const timeline = session.plot.peek();
      const range = timeline?.current;
      if (range && timeline?.axis === plot.value?.axis) plot.value?.setRange(range);
    }),
    // One x range: whichever of the two moves takes the other along.
    effect(() => {
      const range = session.plot.value?.range.value ?? null;
      const mine = plot.value;
      untracked(() => {
        if (range && mine?.axis === session.plot.peek()?.axis) follow(mine, range);
      });
    }),
    effect(() => {
      const range = plot.value?.range.value ?? null;
      untracked(() => {
        const timeline = session.plot.peek();
        if (range && timeline?.axis === plot.peek()?.axis) follow(timeline, range);
      });
    }),
    effect(() => {
      const detail = session.selected.value;
      const kind = session.drawn.value?.axis.kind;
      const span = detail?.spans.find((candidate) => candidate.kind === kind);
      plot.value?.setSelected(detail?.block ?? null, span?.x0, span?.x1);
      // Which rows there are is told anew: a selection must not be lost by it.
      info.value.value;
    }),
    effect(() => {
      const detail = session.selected.value;
      const { asked } = session;
      if (detail === null || !asked) {
        grown.value = null;
        return;
      }
      void asked.client
        .view(asked.target, "segmentOf", { segmentOf: { block: detail.block } })
        .then((segment) => {
          if (session.selected.peek() === detail) grown.value = segment;
        });
    }),
  ];
  const select = async (x: number, y: number) => {
    const hit = plot.peek()?.hitAt(x, y);
    const place = plot.peek()?.placeAt(x, y);
    if (place) void workspace.cursorAt(place.x);
    if (hit && session.asked) {
      session.select(await session.asked.client.block(session.asked.target, hit.block));
      return;
    }
    const row = place && rows.value.peek()?.find(({ y0, y1 }) => place.y >= y0 && place.y < y1);
    if (row) workspace.showSegment(row.segment);
  };
  return { plot, info, rows, select, stop: () => endAll(stop) };
}

interface Label extends Box {
  row: SegmentRow;
}

const CANVAS = {
  "data-testid": "segments-canvas",
  tabindex: "0",
  role: "img",
  "aria-label": "Segments: a row for each place in memory, blocks where they lie in it",
};

export function Segments({ session, workspace }: ViewProperties) {
  const state = useMemo(() => open(session, workspace), [session, workspace]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, info, rows, select } = state;
  const all = info.value.value;
  const list = rows.value.value;
  const axis = session.drawn.value?.axis;
  const cursor = session.linked.cursor.value === null ? null : workspace.moment.value.value;
  const labels = useMemo<Label[]>(
    () =>
      (list ?? []).map((row) => ({
        row,
        x0: Number.NEGATIVE_INFINITY,
        x1: Number.POSITIVE_INFINITY,
        y: [row.y0, row.y1],
      })),
    [list],
  );
  const span = cursor?.spans.find(({ kind }) => kind === axis?.kind);
  const items = useMemo<(Label | Box)[]>(
    () => (span ? [...labels, { x0: span.x0, x1: span.x0 }] : labels),
    [labels, span],
  );
  const selected = session.selected.value;
  return (
    <div class="segments">
      <div class="toolbar">
        <span data-testid="segments-text" title={BRIEF}>
          {all?.text}
        </span>
        <Choice
          label="Order"
          value={session.linked.segmentSort}
          options={SORTS}
          testid="segment-sort"
        />
        <span class="legend" aria-hidden="true">
          <span class="key" data-key="free" /> free
          <span class="key" data-key="pending" /> pending free
        </span>
        <span class="toolbar-end">
          <PictureButtons session={session} plot={plot.value} name="segments" />
          <button
            type="button"
            class="button plain"
            title="The segments at the cursor as a table"
            onClick={() =>
              void saveTable(
                session,
                { segments: { event: session.linked.cursor.peek() ?? LAST } },
                "csv",
                "segments",
              )
            }
          >
            CSV
          </button>
        </span>
      </div>
      <div
        class="plot"
        role="application"
        aria-roledescription="segments"
        aria-label={all?.text ?? "Segments"}
      >
        <Canvas
          session={session}
          plot={plot}
          attributes={CANVAS}
          make={(surface) =>
            new SegmentsPlot(
              surface,
              {
                click: (x, y) => void select(x, y),
                doubleClick: () => plot.peek()?.act((view) => view.fit()),
                marked: (marked) => workspace.marked(marked),
                failed: (error) => session.cannotDraw(error),
              },
              session.hand,
            )
          }
        />
        <NoPicture session={session} plot={plot.value} what="The segments" />
        <AxisLabels plot={all ? plot.value : null} />
        <Overlay plot={plot.value} items={items} class="rows-overlay" label="Segments">
          {(item, place, index) =>
            "row" in item ? (
              <button
                type="button"
                key={item.row.segment}
                class="segment-label"
                title={`${item.row.size.exact}\n${item.row.title}`}
                aria-label={`${item.row.label} segment ${item.row.address}, ${item.row.size.text}`}
                data-segment={item.row.segment}
                data-value={item.row.size.raw}
                tabIndex={index === 0 ? 0 : -1}
                style={{
                  transform: `translateY(${place.top}px)`,
                  height: `${place.height}px`,
                  width: `${place.left - 6}px`,
                }}
                onClick={() => workspace.showSegment(item.row.segment)}
              >
                {item.row.size.text}
              </button>
            ) : (
              <div key="cursor" class="mark" data-kind="cursor" style={placed(place)} />
            )
          }
        </Overlay>
        <RowsBar plot={plot.value} units={all?.units ?? 0} />
        <DraftBox draft={plot.value?.draft.value ?? null} />
        <Tooltip session={session} plot={plot.value} />
        {all?.units === 0 && (
          <p class="plot-state">No segments: nothing was reserved on this device.</p>
        )}
      </div>
      <p class="visually-hidden" aria-live="polite">
        {selected && all ? `${selected.bytes.text} at ${selected.address}` : ""}
      </p>
    </div>
  );
}
