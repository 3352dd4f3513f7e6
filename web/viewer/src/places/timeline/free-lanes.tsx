// The largest free block of each pool, stream and size class over time: a track of the timeline. A
// request that is larger needs new memory from the driver.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import { FINER } from "../../views/queries.js";
import type { ViewUses } from "../../views/workspace.js";
import { CounterLane } from "./counter-lane.js";
import { visibleStretch } from "./lanes.js";

type FreeLanesProperties = ViewUses<"selection" | "viewSelection" | "plots"> & { shown: boolean };

function open({ selection, viewSelection, plots }: Omit<FreeLanesProperties, "shown">) {
  const around = visibleStretch(plots.timeline);
  const isShown = signal(true);
  const lines = resource(selection, "freeLines", () => {
    const stretch = around.value;
    const trace = selection.visibleTrace.value;
    if (!isShown.value || !stretch || !trace?.device) return null;
    // Without a cursor the state at the peak, like the columns beside the rows.
    const event = viewSelection.cursor.value ?? Number(trace.device.peakEvent.raw);
    const { x0, x1, columns } = stretch;
    return { freeLines: { axis: trace.axis.kind, x0, x1, columns: columns * FINER, event } };
  });
  return { lines, isShown };
}

export function FreeLanes({ shown, ...owners }: FreeLanesProperties) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const { lines, isShown } = useMemo(() => open(owners), [owners.selection]);
  useEffect(() => () => lines.stop(), [lines]);
  useEffect(() => {
    isShown.value = shown;
  }, [isShown, shown]);
  const all = lines.value.value ?? [];
  if (all.length === 0) return null;
  return (
    <section class="free-lanes" data-testid="free-lanes" aria-label="Largest free block over time">
      {all.map((line) => (
        <CounterLane key={line.name} plot={owners.plots.timeline.value} line={line} kind="free" />
      ))}
    </section>
  );
}
