// What lies over the timeline: the cursor, the range, rulers, markers, out-of-memory events and
// findings, the device's memory, and what is being dragged out.

import { useMemo } from "preact/hooks";
import type { Axis, AxisKind, Mark, Marker, Moment } from "../generated/protocol.js";
import type { Ruler } from "../linked.js";
import type { Draft } from "../plot/gestures.js";
import type { TimelinePlot } from "../plot/timeline-plot.js";
import type { Session } from "../session.js";
import type { BlockName } from "./block-names.js";
import { type Box, Overlay, placed } from "./overlay.js";
import type { Workspace } from "./workspace.js";

interface Item extends Box {
  key: string;
  kind:
    | "cursor"
    | "range"
    | "ruler-x"
    | "ruler-y"
    | "marker"
    | "oom"
    | "finding"
    | "capacity"
    | "name";
  text: string;
  open?: () => void;
}

/** Out-of-memory events and findings; a click opens what is said of them. */
function marksOf(workspace: Workspace, marks: readonly Mark[]): Item[] {
  return marks.flatMap((mark) => {
    const { kind, slot, text, id } = mark;
    if (kind !== "oom" && kind !== "finding") return [];
    const open = () => {
      const finding = workspace.allFindings.peek()?.find((candidate) => candidate.id === id);
      if (finding) void workspace.openFinding(finding);
      else workspace.openMark(mark);
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

function markersOf(workspace: Workspace, axis: AxisKind, markers: readonly Marker[]): Item[] {
  return markers.flatMap(({ event, label, spans }) => {
    const x = spans.find(({ kind }) => kind === axis)?.x0;
    if (x === undefined) return [];
    const open = () => workspace.goTo(event);
    return [{ key: `marker ${event}`, kind: "marker" as const, text: label, x0: x, x1: x, open }];
  });
}

function capacityOf(plot: TimelinePlot | null, axis: Axis, capacity: number | null): Item[] {
  if (capacity === null) return [];
  const text = `capacity ${plot?.measured("y", { x: 0, y: 0 }, { x: 0, y: capacity }) ?? ""}`;
  return [
    { key: "capacity", kind: "capacity", text, x0: 0, x1: axis.extent, y: [capacity, capacity] },
  ];
}

function namesOf(names: readonly BlockName[]): Item[] {
  return names.map(({ block, ...name }) => ({ key: `name ${block}`, kind: "name", ...name }));
}

function cursorOf(axis: AxisKind, moment: Moment | null): Item[] {
  const span = moment?.spans.find(({ kind }) => kind === axis);
  return span && moment
    ? [{ key: "cursor", kind: "cursor", text: moment.label, x0: span.x0, x1: span.x0 }]
    : [];
}

export function TimelineMarks({ session, workspace }: { session: Session; workspace: Workspace }) {
  const { linked, plot, shown } = session;
  const axis = shown.value?.axis;
  const moment = workspace.moment.value.value;
  const course = workspace.course.value.value;
  const range = linked.range.value;
  const rulers = linked.rulers.value;
  const markers = workspace.markers.value.value;
  const capacity = linked.capacity.value;
  const cursor = linked.cursor.value;
  const names = workspace.names.shown.value;
  const items = useMemo(() => {
    if (!axis) return [];
    const { kind } = axis;
    return [
      ...(range?.axis === kind
        ? [{ key: "range", kind: "range" as const, text: "", x0: range.x0, x1: range.x1 }]
        : []),
      ...marksOf(workspace, course?.marks ?? []),
      ...rulersOf(plot.peek(), kind, rulers),
      ...markersOf(workspace, kind, markers ?? []),
      ...capacityOf(plot.peek(), axis, capacity),
      ...namesOf(names),
      ...(cursor === null ? [] : cursorOf(kind, moment)),
    ];
  }, [axis, moment, course, range, rulers, markers, capacity, cursor, names, plot, workspace]);
  return (
    <>
      <Overlay plot={plot.value} items={items} class="marks" label="Marks">
        {(item, place) =>
          item.open ? (
            <button
              type="button"
              key={item.key}
              class="mark"
              data-kind={item.kind}
              title={item.text}
              aria-label={item.text}
              style={placed(place)}
              onClick={item.open}
            />
          ) : (
            <div key={item.key} class="mark" data-kind={item.kind} style={placed(place)}>
              {item.text !== "" && <span class="mark-text">{item.text}</span>}
            </div>
          )
        }
      </Overlay>
      <DraftBox draft={plot.value?.draft.value ?? null} />
    </>
  );
}

/** What is being dragged out. */
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
