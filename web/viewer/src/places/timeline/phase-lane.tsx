// The steps and their phases above the timeline, one lane each.

import { useMemo, useState } from "preact/hooks";
import type { ViewUses } from "../../views/workspace.js";
import { Lanes } from "./lanes.js";
import { type LaneEntry, laidOf, lanesOf } from "./phase-items.js";
import type { Dress } from "./track-items.js";

const DRESS: Dress<LaneEntry> = {
  button(button, { kind, shaded, text }) {
    Object.assign(button, { ariaLabel: text });
    button.setAttribute("data-phase", kind);
    button.toggleAttribute("data-shaded", shaded);
  },
  // The word is shown where it fits whole: what does not fit wraps.
  name(name, { word }) {
    const inside = name.appendChild(document.createElement("span"));
    inside.textContent = word;
  },
};

type Tip = { text: string; left: number };

type PhaseLaneProperties = ViewUses<"plots" | "queries" | "cards">;

export function PhaseLane({ plots, queries, cards }: PhaseLaneProperties) {
  const [tip, setTip] = useState<Tip | null>(null);
  const phases = queries.phases.value.value;
  const laid = useMemo(() => laidOf(phases), [phases]);
  if (phases === null || laid === null) return null;
  const lanes = lanesOf(phases);
  return (
    <Lanes
      plots={plots}
      laid={laid}
      lanes={lanes}
      dress={DRESS}
      class="tracks phases"
      label={`Phases of ${phases.label}`}
      items={phases.label}
      // A range ends where its last slot ends.
      mark={({ x0, x1 }) => void cards.selectRange(x0, x1 + 1)}
      point={(item, left) => setTip(item ? { text: item.text, left } : null)}
    >
      <span class="lane-label" aria-hidden="true">
        {phases.label}
      </span>
      {tip && (
        <p class="tooltip lane-tip" style={{ "--x": `${tip.left}px` }} data-testid="lane-tip">
          {tip.text}
        </p>
      )}
    </Lanes>
  );
}
