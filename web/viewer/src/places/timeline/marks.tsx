// Marks over the timeline: cursor, range, rulers, markers, out-of-memory events, findings, the
// GPU's memory, block labels, and the box of a drag.

import { useMemo } from "preact/hooks";
import type { Labels } from "../../../wasm/vramscope_view.js";
import type {
  Axis,
  AxisBreak,
  AxisKind,
  ColorBy,
  Limit,
  Mark,
  Marker,
  Side,
  StateAt,
} from "../../generated/protocol.js";
import type { Draft } from "../../plot/gestures.js";
import type { TimelinePlot } from "../../plot/timeline-plot.js";
import type { Ruler } from "../../view-selection.js";
import { type Box, Overlay, type Place, placed } from "../../views/overlay.js";
import type { ViewUses } from "../../views/workspace.js";
import type { BlockName, GroupName } from "./block-names.js";
import { EndMark } from "./end-mark.js";
import { capacityOf } from "./limits.js";
import { SelectedBlock } from "./selected-block.js";
import { SimulatedLine } from "./simulated-line.js";

export interface Item extends Box {
  key: string;
  kind:
    | "cursor"
    | "range"
    | "ruler-x"
    | "ruler-y"
    | "marker"
    | "end"
    | "oom"
    | "finding"
    | "capacity"
    | "request"
    | "break"
    | "group"
    | "name"
    | "selected";
  text: string;
  /** The raw value of the number in the text. */
  raw?: string;
  /** The color of a swatch beside the text, and the side of the peak where it is. */
  swatch?: number;
  side?: Side;
  /** The color below the text; null for several colors. */
  below?: number | null;
  title?: string;
  open?: () => void;
  /** Of A and B: moves it to a slot. */
  move?: (slot: number) => void;
}

type MarksOwners = ViewUses<
  "selection" | "viewSelection" | "plots" | "appearance" | "queries" | "steps" | "names" | "levers"
>;

/** Out-of-memory events and findings. A click opens the finding. */
function marksOf({ queries, steps }: MarksOwners, marks: readonly Mark[]): Item[] {
  return marks.flatMap((mark) => {
    const { kind, slot, text, id } = mark;
    if (kind !== "oom" && kind !== "finding") return [];
    const open = () => {
      const finding = queries.findings.peek().find(({ record }) => record.id === id);
      if (finding) void steps.goToFinding(finding);
      else steps.openMark(mark);
    };
    return [{ key: `${kind} ${slot} ${id}`, kind, text, x0: slot, x1: slot, open }];
  });
}

function rulersOf(plot: TimelinePlot | null, axis: AxisKind, rulers: readonly Ruler[]): Item[] {
  return rulers.flatMap((ruler, index) => {
    if (ruler.axis !== axis) return [];
    const { along, x0, x1, y0, y1 } = ruler;
    const text = plot?.measured(along, { x: x0, y: y0 }, { x: x1, y: y1 }) ?? "";
    return [
      {
        key: `ruler ${index}`,
        kind: `ruler-${along}` as const,
        text,
        x0,
        x1,
        y: [y0, y1] as [number, number],
      },
    ];
  });
}

function markersOf(
  { steps, viewSelection }: MarksOwners,
  axis: AxisKind,
  markers: readonly Marker[],
): Item[] {
  const marked = viewSelection.markers.peek();
  return markers.flatMap(({ event, label, spans }) => {
    const x = spans.find(({ kind }) => kind === axis)?.x0;
    if (x === undefined || !marked.includes(event)) return [];
    const open = () => steps.goTo(event);
    return [{ key: `marker ${event}`, kind: "marker" as const, text: label, x0: x, x1: x, open }];
  });
}

/** The moments A and B. */
function endsOf(
  { selection, viewSelection }: MarksOwners,
  axis: AxisKind,
  markers: readonly Marker[],
): Item[] {
  const ends = viewSelection.ends.peek();
  return (["a", "b"] as const).flatMap((end) => {
    const marker = markers.find(({ event }) => event === ends[end]);
    const x = marker?.spans.find(({ kind }) => kind === axis)?.x0;
    if (!marker || x === undefined) return [];
    const text = end.toUpperCase();
    const move = (slot: number) => void selection.endAt(end, slot);
    const title = `${text}: ${marker.label}\nDrag to move`;
    return [{ key: `end ${end}`, kind: "end" as const, text, title, x0: x, x1: x, move }];
  });
}

function capacityItem(
  plot: TimelinePlot | null,
  axis: Axis,
  given: number | null,
  limit: Limit | null,
): Item[] {
  const capacity = capacityOf(given, limit);
  if (capacity === null) return [];
  const measured = plot?.measured("y", { x: 0, y: 0 }, { x: 0, y: capacity }) ?? "";
  const text = given === null && limit ? limit.text : `GPU memory ${measured}`;
  return [
    { key: "capacity", kind: "capacity", text, x0: 0, x1: axis.extent, y: [capacity, capacity] },
  ];
}

/** Allocations that failed, on top of the stack. */
function requestsOf(limit: Limit | null): Item[] {
  return (limit?.requests ?? []).map(({ event, slot, low, high, text }) => ({
    key: `request ${event}`,
    kind: "request",
    text,
    title: text,
    x0: slot,
    x1: slot,
    y: [low, high],
  }));
}

/** Parts of the time axis that take less room. */
function breaksOf(axis: Axis, breaks: readonly AxisBreak[]): Item[] {
  if (axis.kind !== "time") return [];
  return breaks.map(({ x0, x1, text, title }) => ({
    key: `break ${x0}`,
    kind: "break",
    text,
    title,
    x0,
    x1,
  }));
}

/** Room of the text of a failed request above it, and of the peak's label, in CSS pixels. */
const REQUEST_TEXT = { width: 140, height: 24 };
const PEAK_TEXT = { width: 120, height: 20 };

/** Whether the text of a failed request has no room before it, and stands after it. */
const isAtStart = ({ left }: Place) => left < REQUEST_TEXT.width;

/** Whether a failed request lies over the label of the peak. The peak has its line there. */
function coversPeak(place: Place, peak: Labels["peak"] | undefined): boolean {
  if (!peak) return false;
  const { left, top, height } = place;
  const { x, y } = peak;
  const start = isAtStart(place) ? left : left - REQUEST_TEXT.width;
  const besides = x > start + REQUEST_TEXT.width || x + PEAK_TEXT.width < start;
  return !besides && y < top + height && y + PEAK_TEXT.height > top - REQUEST_TEXT.height;
}

function namesOf(names: readonly BlockName[]): Item[] {
  return names.map(({ block, color, ...name }) => ({
    key: `name ${block}`,
    kind: "name",
    below: color,
    ...name,
  }));
}

function groupsOf(groups: readonly GroupName[], by: ColorBy): Item[] {
  return groups.map(({ group, color, beside, ...label }) => ({
    key: `group ${group}`,
    kind: "group",
    below: beside === null && by === "category" ? color : null,
    ...(beside && { swatch: color, side: beside }),
    ...label,
  }));
}

function cursorOf(axis: AxisKind, state: StateAt | null): Item[] {
  const span = state?.spans.find(({ kind }) => kind === axis);
  return span && state
    ? [{ key: "cursor", kind: "cursor", text: state.label, x0: span.x0, x1: span.x0 }]
    : [];
}

export function TimelineMarks(owners: MarksOwners) {
  const { selection, viewSelection, plots, appearance, queries } = owners;
  const plot = plots.timeline;
  const axis = selection.visibleTrace.value?.axis;
  const state = queries.stateAt.value.value;
  const marks = queries.minimap.value.value?.marks;
  const range = viewSelection.range.value;
  const rulers = viewSelection.rulers.value;
  const markers = queries.markers.value.value;
  const ends = viewSelection.ends.value;
  const capacity = viewSelection.capacity.value;
  const limit = queries.limit.value.value;
  const cursor = viewSelection.cursor.value;
  const names = owners.names.shown.value;
  const groups = owners.names.groups.value;
  const selected = owners.names.selected.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const items = useMemo(() => {
    if (!axis) return [];
    const { kind } = axis;
    return [
      ...breaksOf(axis, selection.visibleTrace.peek()?.device.breaks ?? []),
      ...(range?.axis === kind
        ? [{ key: "range", kind: "range" as const, text: "", x0: range.x0, x1: range.x1 }]
        : []),
      ...marksOf(owners, marks ?? []),
      ...rulersOf(plot.peek(), kind, rulers),
      ...markersOf(owners, kind, markers ?? []),
      ...endsOf(owners, kind, markers ?? []),
      ...capacityItem(plot.peek(), axis, capacity, limit),
      ...requestsOf(limit),
      ...namesOf(names),
      ...groupsOf(groups, viewSelection.color.peek()),
      ...(selected ? [{ key: "selected", kind: "selected" as const, text: "", ...selected }] : []),
      ...(cursor === null ? [] : cursorOf(kind, state)),
    ];
  }, [
    axis,
    state,
    marks,
    range,
    rulers,
    markers,
    ends,
    capacity,
    limit,
    cursor,
    names,
    groups,
    selected,
  ]);
  return (
    <>
      <SimulatedLine plots={plots} levers={owners.levers} />
      <Overlay plot={plot.value} items={items} class="marks" label="Marks">
        {(item, place) => (
          <MarkOf
            key={item.key}
            appearance={appearance}
            plot={plot.peek()}
            peak={plot.value?.labels.value?.peak}
            item={item}
            place={place}
          />
        )}
      </Overlay>
      <DraftBox draft={plot.value?.draft.value ?? null} />
    </>
  );
}

type MarkProperties = Pick<MarksOwners, "appearance"> & {
  plot: TimelinePlot | null;
  /** The label of the peak. */
  peak: Labels["peak"] | undefined;
  item: Item;
  place: Place;
};

/** The color of a text on its blocks; undefined for a text with a ground. */
const inkOf = (appearance: MarksOwners["appearance"], { below }: Item) =>
  typeof below === "number" ? appearance.ink(below) : undefined;

function MarkOf({ appearance, plot, peak, item, place }: MarkProperties) {
  const { kind, text, open } = item;
  if (kind === "selected") return <SelectedBlock place={place} />;
  if (item.move) return <EndMark plot={plot} item={item} place={place} />;
  if (open) {
    return (
      <button
        type="button"
        class="mark"
        data-kind={kind}
        title={text}
        aria-label={text}
        style={placed(place)}
        onClick={open}
      />
    );
  }
  return (
    <div
      class="mark"
      data-kind={kind}
      data-value={item.raw}
      data-side={item.side}
      data-ground={item.below === null}
      data-at-start={kind === "request" && isAtStart(place)}
      data-covers-peak={kind === "request" && coversPeak(place, peak)}
      title={item.title}
      style={{ ...placed(place), "--at": `${place.left}px` }}
    >
      {item.swatch !== undefined && (
        <span class="swatch" style={{ background: appearance.swatch(item.swatch) }} />
      )}
      {text !== "" && (
        <span class="mark-text" style={{ color: inkOf(appearance, item) }}>
          {text}
        </span>
      )}
    </div>
  );
}

/** The box, range or ruler that is being dragged. */
export function DraftBox({ draft }: { draft: Draft | null }) {
  if (draft === null) return null;
  const { mode, left, top, right, bottom, text } = draft;
  return (
    <div
      class="mark draft"
      data-kind={mode}
      aria-hidden="true"
      style={placed({ left, top, width: right - left, height: bottom - top })}
    >
      {text !== "" && <span class="mark-text">{text}</span>}
    </div>
  );
}
