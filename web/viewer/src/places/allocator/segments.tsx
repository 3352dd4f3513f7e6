// The segments view: one row per address range with the segments that were there over time, locked
// to the timeline's x axis.

import { computed, effect, signal, untracked } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Range } from "../../client/rank-client.js";
import { resource, stopAll } from "../../client/resource.js";
import type {
  SegmentGroup,
  SegmentRow,
  SegmentSort,
  SegmentSpec,
} from "../../generated/protocol.js";
import type { CanvasPlot, Heights } from "../../plot/canvas-plot.js";
import { AxisLabels } from "../../ui/axis-labels.js";
import { Canvas } from "../../ui/canvas.js";
import { NoPicture } from "../../ui/messages.js";
import { RowsBar } from "../../ui/rows-bar.js";
import { Tooltip } from "../../ui/tooltip.js";
import { LAST_EVENT } from "../../views/cards.js";
import { Choice } from "../../views/controls.js";
import { type Box, Overlay, placed } from "../../views/overlay.js";
import { PictureButtons } from "../../views/picture-buttons.js";
import { saveTable } from "../../views/save.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { DraftBox } from "../timeline/marks.js";
import { GroupHead, SegmentColumns } from "./segment-columns.js";
import { SegmentsPlot } from "./segments-plot.js";

const BRIEF =
  "A segment that lives for less than a pixel is drawn as it was at the allocation it was made for";

const SORTS: readonly (readonly [SegmentSort, string])[] = [
  ["size", "size"],
  ["address", "address"],
  ["pool", "pool"],
  ["occupancy", "emptiest at the cursor"],
];

const sameRange = (a: Range | null, b: Range | null) => a?.x0 === b?.x0 && a?.x1 === b?.x1;

/** Moves a plot to the range of another plot. Both must have the same axis. */
function follow(plot: CanvasPlot<unknown> | null, range: Range): void {
  if (plot && !sameRange(range, plot.range.peek())) plot.setRange(range);
}

/**
 * The heights for which rows are requested: some screens, unchanged while the view stays inside.
 */
function stretch({ y0, y1 }: Heights): Heights {
  const page = 2 ** Math.ceil(Math.log2(y1 - y0));
  const middle = Math.round((y0 + y1) / 2 / page) * page;
  return { y0: middle - 1.5 * page, y1: middle + 1.5 * page };
}

type SegmentsOwners = ViewUses<"selection" | "viewSelection" | "filters" | "plots" | "cards">;

/** Queries of the view, and the effects that lock it to the timeline. */
function open({ selection, viewSelection, filters, plots, cards }: SegmentsOwners) {
  const plot = plots.segments;
  /** The segment of the selected block, whose row is enlarged. */
  const grown = signal<number | null>(null);
  const spec = (): SegmentSpec => {
    const sort = viewSelection.segmentSort.value;
    // Only this order depends on the cursor; the others must not be requested when it moves.
    const event = sort === "occupancy" ? (viewSelection.cursor.value ?? -1) : -1;
    return { sort, event, grown: grown.value };
  };
  const isShown = signal(true);
  const info = resource(selection, "segments", () => ({ segments: { rows: spec() } }));
  let latest: Heights | null = null;
  const near = computed(() => {
    const heights = plot.value?.heights.value;
    const next = heights ? stretch(heights) : null;
    if (next?.y0 !== latest?.y0 || next?.y1 !== latest?.y1) latest = next;
    return latest;
  });
  const rows = resource(selection, "segmentRows", () =>
    near.value ? { segmentRows: { rows: spec(), ...near.value } } : null,
  );
  // In use at the cursor; without a cursor at the peak, like the details.
  const uses = resource(selection, "segmentUses", () => {
    const peak = selection.trace.value?.device?.peakEvent.raw;
    const event = viewSelection.cursor.value ?? (peak === undefined ? null : Number(peak));
    if (!near.value || event === null || !isShown.value) return null;
    return { segmentUses: { rows: spec(), ...near.value, event } };
  });
  const stop = [
    () => info.stop(),
    () => rows.stop(),
    () => uses.stop(),
    effect(() => {
      const trace = selection.drawableTrace.value;
      const all = info.value.value;
      const look = all && {
        color: viewSelection.color.value,
        search: filters.text.value,
        spec: untracked(spec),
        info: all,
      };
      plot.value?.show(trace, look);
      // The timeline's current range, not that of its last frame: this plot may draw first.
      const timeline = plots.timeline.peek();
      const range = timeline?.current;
      if (range && timeline?.axis === plot.value?.axis) plot.value?.setRange(range);
    }),
    // Both plots have one x range: each follows the other.
    effect(() => {
      const range = plots.timeline.value?.range.value ?? null;
      const mine = plot.value;
      untracked(() => {
        if (range && mine?.axis === plots.timeline.peek()?.axis) follow(mine, range);
      });
    }),
    effect(() => {
      const range = plot.value?.range.value ?? null;
      untracked(() => {
        const timeline = plots.timeline.peek();
        if (range && timeline?.axis === plot.peek()?.axis) follow(timeline, range);
      });
    }),
    effect(() => {
      const detail = selection.block.value;
      const span = detail && selection.spanOf(detail);
      plot.value?.setSelected(detail?.block ?? null, span?.x0, span?.x1);
      // New rows clear the plot's selection.
      info.value.value;
    }),
    effect(() => {
      const detail = selection.block.value;
      const { target } = selection;
      if (detail === null || !target) {
        grown.value = null;
        return;
      }
      void target.client
        .view(target.target, "segmentOf", { segmentOf: { block: detail.block } })
        .then((segment) => {
          if (selection.block.peek() === detail) grown.value = segment;
        });
    }),
  ];
  const select = async (x: number, y: number) => {
    const hit = plot.peek()?.hitAt(x, y);
    const place = plot.peek()?.placeAt(x, y);
    if (place) void selection.cursorAt(place.x);
    const { target } = selection;
    if (hit && target) {
      selection.select(await target.client.block(target.target, hit.block));
      return;
    }
    const row = place && rows.value.peek()?.find(({ y0, y1 }) => place.y >= y0 && place.y < y1);
    if (row) cards.showSegment(row.segment);
  };
  return { plot, info, rows, uses, isShown, select, stop: () => stopAll(stop) };
}

const nameOf = ({ label, address, size }: SegmentRow) =>
  `${label} segment ${address}, ${size.text}`;

interface Label extends Box {
  row: SegmentRow;
}

interface Header extends Box {
  group: SegmentGroup;
}

const CANVAS = {
  "data-testid": "segments-canvas",
  tabindex: "0",
  role: "img",
  "aria-label": "Segments: one row per address range, blocks at their addresses",
};

export function Segments({
  appearance,
  queries,
  navigation,
  shown,
  ...owners
}: SegmentsOwners & ViewProperties & ViewUses<"appearance" | "queries" | "navigation">) {
  const { selection, viewSelection, plots, cards } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, info, rows, uses, isShown, select } = state;
  // As a track the plot is as wide as the timeline, because both have one axis.
  const isMain = navigation.view.value === "segments";
  useEffect(() => {
    isShown.value = shown && isMain;
  }, [isShown, shown, isMain]);
  const all = info.value.value;
  const list = rows.value.value;
  const atCursor = viewSelection.cursor.value === null ? null : queries.stateAt.value.value;
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
  const span = atCursor && selection.spanOf(atCursor);
  const headers = useMemo<Header[]>(
    () =>
      (all?.groups ?? []).map((group) => ({
        group,
        x0: Number.NEGATIVE_INFINITY,
        x1: Number.POSITIVE_INFINITY,
        y: [group.y0, group.y1],
      })),
    [all],
  );
  const items = useMemo<(Label | Header | Box)[]>(
    () => [...labels, ...headers, ...(span ? [{ x0: span.x0, x1: span.x0 }] : [])],
    [labels, headers, span],
  );
  const selected = selection.block.value;
  return (
    <div class="segments">
      <div class="toolbar">
        <span data-testid="segments-text" title={BRIEF}>
          {all?.text}
        </span>
        <Choice
          label="Order"
          value={viewSelection.segmentSort}
          options={SORTS}
          testid="segment-sort"
        />
        <span class="legend" aria-hidden="true">
          <span class="key" data-key="free" /> free
          <span class="key" data-key="pending" /> pending free
        </span>
        <span class="toolbar-end">
          <PictureButtons
            selection={selection}
            appearance={appearance}
            plot={plot.value}
            name="segments"
          />
          <button
            type="button"
            class="button plain"
            title="Save the segments at the cursor as CSV"
            onClick={() =>
              void saveTable(
                selection,
                { segments: { event: viewSelection.cursor.peek() ?? LAST_EVENT } },
                "csv",
                "segments",
              )
            }
          >
            CSV
          </button>
        </span>
      </div>
      <div class="segments-body">
        <div
          class="plot"
          role="application"
          aria-roledescription="segments"
          aria-label={all?.text ?? "Segments"}
        >
          <Canvas
            plots={plots}
            appearance={appearance}
            plot={plot}
            attributes={CANVAS}
            make={(surface) =>
              new SegmentsPlot(
                surface,
                {
                  click: (x, y) => void select(x, y),
                  doubleClick: () => plot.peek()?.act((view) => view.fit()),
                  marked: (marked) => cards.marked(marked),
                  failed: (error) => plots.fail(error),
                },
                plots.gestureOptions,
              )
            }
          />
          <NoPicture plots={plots} plot={plot.value} what="The segments view" />
          <AxisLabels plot={all ? plot.value : null} />
          <Overlay plot={plot.value} items={items} class="rows-overlay" label="Segments">
            {(item, place, index) =>
              "row" in item ? (
                <button
                  type="button"
                  key={item.row.segment}
                  class="segment-label"
                  title={`${item.row.size.exact}\n${item.row.title}`}
                  aria-label={nameOf(item.row)}
                  data-segment={item.row.segment}
                  data-value={item.row.size.raw}
                  tabIndex={index === 0 ? 0 : -1}
                  style={{
                    transform: `translateY(${place.top}px)`,
                    height: `${place.height}px`,
                    width: `${place.left - 6}px`,
                  }}
                  onClick={() => cards.showSegment(item.row.segment)}
                >
                  {item.row.size.text}
                </button>
              ) : "group" in item ? (
                <GroupHead key={item.group.text} group={item.group} place={place} />
              ) : (
                <div key="cursor" class="mark" data-kind="cursor" style={placed(place)} />
              )
            }
          </Overlay>
          <RowsBar plot={plot.value} units={all?.units ?? 0} />
          <DraftBox draft={plot.value?.draft.value ?? null} />
          <Tooltip appearance={appearance} plot={plot.value} />
          {all?.units === 0 && (
            <p class="plot-state">No segments: nothing was reserved on this device.</p>
          )}
        </div>
        {isMain && (
          <SegmentColumns
            plot={plot.value}
            items={items.map((item) =>
              "row" in item ? item.row.segment : "group" in item ? "group" : null,
            )}
            uses={uses.value.value}
          />
        )}
      </div>
      <p class="visually-hidden" aria-live="polite">
        {selected && all ? `${selected.bytes.text} at ${selected.address}` : ""}
      </p>
    </div>
  );
}
