// The columns beside the segments: what of each row is in use at the cursor. They are beside the
// plot, so that no number covers a block.

import type { SegmentGroup, SegmentUse, SegmentUses } from "../../generated/protocol.js";
import type { CanvasPlot } from "../../plot/canvas-plot.js";
import { type Place, placed } from "../../views/overlay.js";

/** Numbers per place in the plot's `boxes`. */
const NUMBERS = 5;
/** Lower rows have no room for a line of text. */
const MIN_HEIGHT = 10;

interface ColumnsProperties {
  plot: CanvasPlot<unknown> | null;
  /** For each box of the plot: the segment of its row, `group` for a header, null for others. */
  items: readonly (number | "group" | null)[];
  uses: SegmentUses | null;
}

export function SegmentColumns({ plot, items, uses }: ColumnsProperties) {
  const places = plot?.boxes.value;
  const of = new Map((uses?.rows ?? []).map((use) => [use.segment, use]));
  const firstGroup = items.indexOf("group");
  const lines = [];
  for (let at = 0; places && at + NUMBERS <= places.length; at += NUMBERS) {
    const [index = 0, , top = 0, , height = 0] = places.subarray(at, at + NUMBERS);
    const item = items[index];
    if (item === undefined || item === null || height < MIN_HEIGHT) continue;
    const use = item === "group" ? uses?.groups[index - firstGroup] : of.get(item);
    if (use) lines.push({ use, top, height, isGroup: item === "group" });
  }
  return (
    <div class="segment-columns" data-testid="segment-columns">
      <p class="segment-columns-head" data-event={uses?.when}>
        <span>used</span>
        <span>free</span>
        <span title="The largest free piece">largest hole</span>
      </p>
      {lines.map(({ use, top, height, isGroup }) => (
        <Line
          key={`${isGroup} ${use.segment}`}
          use={use}
          top={top}
          height={height}
          isGroup={isGroup}
        />
      ))}
      {uses && <p class="segment-columns-when">after {uses.when}</p>}
    </div>
  );
}

interface LineProperties {
  use: SegmentUse;
  top: number;
  height: number;
  isGroup: boolean;
}

function Line({ use, top, height, isGroup }: LineProperties) {
  const cells = [
    ["used", use.used],
    ["free", use.free],
    ["hole", use.hole],
  ] as const;
  return (
    <p
      class="segment-use"
      data-group={isGroup}
      data-segment={use.segment}
      style={{ transform: `translateY(${top}px)`, height: `${height}px` }}
    >
      {cells.map(([column, quantity]) => (
        <span key={column} data-column={column} data-value={quantity.raw} title={quantity.exact}>
          {quantity.raw === "0" ? "–" : quantity.text}
        </span>
      ))}
    </p>
  );
}

/** The header of the rows of a pool. */
export function GroupHead({ group, place }: { group: SegmentGroup; place: Place }) {
  return (
    <p class="segment-group" title={group.title} style={placed({ ...place, left: 8 })}>
      {group.text}
    </p>
  );
}
