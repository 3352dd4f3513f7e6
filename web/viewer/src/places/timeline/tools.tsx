// The toolbar of the timeline: grouping, coloring, lines, axis, and places to go to.

import { useState } from "preact/hooks";
import type { AxisKind, ColorBy, GroupBy } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import { Menu } from "../../ui/menu.js";
import { COLORS, GROUPS } from "../../view-selection.js";
import { LAST_EVENT } from "../../views/cards.js";
import { Choice } from "../../views/controls.js";
import type { ViewUses } from "../../views/workspace.js";
import { Lines } from "./legend.js";

const COLOR_OPTIONS = Object.entries(COLORS) as [ColorBy, string][];
const GROUP_OPTIONS = Object.entries(GROUPS) as [GroupBy, string][];

type ToolsProperties = ViewUses<
  "selection" | "viewSelection" | "navigation" | "appearance" | "queries" | "steps" | "levers"
>;

export function TimelineTools(owners: ToolsProperties) {
  const { selection, viewSelection } = owners;
  const [isOpen, setOpen] = useState(false);
  // Without a history there is no timeline.
  if (selection.trace.value?.device?.note != null) return null;
  return (
    <>
      <button
        type="button"
        class="button plain tools-fold"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="sliders" /> View
      </button>
      <div class="tools-folded" data-open={isOpen}>
        <Choice
          label="Group"
          value={viewSelection.group}
          options={GROUP_OPTIONS}
          testid="group-by"
        />
        <Choice
          label="Color"
          value={viewSelection.color}
          options={COLOR_OPTIONS}
          testid="color-by"
        />
        <Lines {...owners} />
        <AxisSwitch selection={selection} />
      </div>
      <GoTo {...owners} />
    </>
  );
}

/** Peaks in the menu. */
const MAX_PEAKS = 4;

/** Moments worth a look: failures, peaks, and the steps over each other. */
function GoTo({ queries, steps, navigation }: ToolsProperties) {
  const marks = queries.minimap.value.value?.marks ?? [];
  const ooms = marks.filter(({ kind }) => kind === "oom");
  const peaks = marks.filter(({ kind }) => kind === "peak").slice(0, MAX_PEAKS);
  return (
    <Menu text="Go to" name="Go to" align="end">
      {[...ooms, ...peaks].map((mark) => (
        <button
          key={`${mark.kind} ${mark.event}`}
          type="button"
          class="button menu-item"
          data-kind={mark.kind}
          onClick={() => steps.openMark(mark)}
        >
          {mark.text}
        </button>
      ))}
      <button type="button" class="button menu-item" onClick={() => steps.goTo(LAST_EVENT)}>
        End of the recording
      </button>
      <button type="button" class="button menu-item" onClick={() => navigation.openSheet("peak")}>
        Events around the peak
      </button>
      <button type="button" class="button menu-item" onClick={() => navigation.openSheet("steps")}>
        Steps over each other
      </button>
    </Menu>
  );
}

const AXIS_NAMES: Partial<Record<AxisKind, string>> = { event: "events", time: "time" };

function AxisSwitch({ selection }: ViewUses<"selection">) {
  const axes = selection.trace.value?.device?.axes ?? [];
  const visible = selection.visibleTrace.value;
  if (axes.length < 2 || !visible) return null;
  return (
    <fieldset class="segmented small" title="X axis: events or time (X)">
      <legend class="visually-hidden">X axis</legend>
      {axes.map(({ kind }) => (
        <button
          key={kind}
          type="button"
          aria-pressed={visible.axis.kind === kind}
          onClick={() => {
            selection.axis.value = kind;
          }}
        >
          {AXIS_NAMES[kind]}
        </button>
      ))}
    </fieldset>
  );
}
