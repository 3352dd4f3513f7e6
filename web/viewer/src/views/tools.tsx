// The toolbar of the timeline: coloring, lines, GPU memory and pictures.

import type { ColorBy } from "../generated/protocol.js";
import { COLORS } from "../view-selection.js";
import { Capacity } from "./capacity.js";
import { Choice, Toggle } from "./controls.js";
import { PictureButtons } from "./picture-buttons.js";
import type { ViewUses } from "./workspace.js";

const COLOR_OPTIONS = Object.entries(COLORS) as [ColorBy, string][];

const LINES = "Show reserved/active/allocated lines";
const POOLS = "and requested bytes plus whole private pools, which no other code can use";
const LINES_AND_POOLS = `${LINES}, ${POOLS}`;

type ToolsProperties = ViewUses<
  "selection" | "viewSelection" | "plots" | "appearance" | "queries" | "whatIfs"
>;

export function TimelineTools(owners: ToolsProperties) {
  const { selection, viewSelection, plots, appearance, queries } = owners;
  const hasPools = (queries.minimap.value.value?.pools ?? 0) > 0;
  const isSimulated = Boolean(owners.whatIfs.curve.value.value?.path);
  return (
    <>
      <Choice label="Color" value={viewSelection.color} options={COLOR_OPTIONS} testid="color-by" />
      <Legend {...owners} />
      <Toggle
        label="Lines"
        title={hasPools ? LINES_AND_POOLS : LINES}
        value={viewSelection.bands}
      />
      {viewSelection.bands.value && (
        <span class="legend" aria-hidden="true">
          <span class="line" data-band="reserved" /> reserved
          <span class="line" data-band="active" /> active
          <span class="line" data-band="allocated" /> allocated
          {hasPools && (
            <>
              <span class="line" data-band="pools" /> private pools
            </>
          )}
        </span>
      )}
      {isSimulated && (
        <span class="legend" aria-hidden="true">
          <span class="line" data-band="simulated" /> reserved, simulated
        </span>
      )}
      <Capacity viewSelection={viewSelection} />
      <span class="toolbar-end">
        <PictureButtons
          selection={selection}
          appearance={appearance}
          plot={plots.timeline.value}
          name="timeline"
          simulated={isSimulated ? viewSelection.scenario.value : null}
        />
      </span>
    </>
  );
}

/** The categories at the peak with their colors. */
function Legend({ selection, viewSelection, appearance, queries }: ToolsProperties) {
  if (viewSelection.color.value !== "category") return null;
  const focus = selection.focus.value;
  const card = focus?.file.cards.value?.[focus.part];
  const categories = card?.categories ?? queries.stateAt.value.value?.categories ?? [];
  return (
    <ul class="legend" aria-label="Categories">
      {categories.map(({ name, label, color, bytes }) => (
        <li key={name} title={`${bytes.exact} at the peak`}>
          <span class="swatch" style={{ background: appearance.swatch(color) }} /> {label}
        </li>
      ))}
    </ul>
  );
}
