// The steps and their phases below the timeline, in one lane.

import { useMemo, useState } from "preact/hooks";
import type { PhaseItem, Phases } from "../generated/protocol.js";
import { Lanes } from "./lanes.js";
import type { Dress, Laid, LaneItem } from "./track-items.js";
import type { ViewUses } from "./workspace.js";

type Item = PhaseItem & LaneItem;

const DRESS: Dress<Item> = {
  button(button, { phase, step, text }) {
    Object.assign(button, { ariaLabel: text });
    button.setAttribute("data-phase", phase);
    button.toggleAttribute("data-step", step !== "");
  },
  // The word and the number are shown where they fit whole: what does not fit wraps.
  name(name, { phase, step }) {
    for (const [kind, text] of [
      ["step", step],
      ["phase", phase === "other" ? "" : phase],
    ] as const) {
      if (text === "") continue;
      const part = name.appendChild(document.createElement("span"));
      part.className = `lane-${kind}`;
      part.textContent = text;
    }
  },
};

/** The items as those of one lane. */
function laidOf(phases: Phases | null): Laid<Item> | null {
  if (phases === null || phases.items.length === 0) return null;
  const { items, ...stretch } = phases;
  return { ...stretch, items: items.map((item) => ({ ...item, lane: 0, text: item.title })) };
}

type Tip = { text: string; left: number };

type PhaseLaneProperties = ViewUses<"plots" | "queries" | "cards">;

export function PhaseLane({ plots, queries, cards }: PhaseLaneProperties) {
  const [tip, setTip] = useState<Tip | null>(null);
  const phases = queries.phases.value.value;
  const laid = useMemo(() => laidOf(phases), [phases]);
  if (phases === null || laid === null) return null;
  return (
    <>
      <Lanes
        plots={plots}
        laid={laid}
        lanes={1}
        dress={DRESS}
        class="tracks phases"
        label={`Phases of ${phases.label}`}
        items={phases.label}
        // A range ends where its last slot ends.
        mark={({ x0, x1 }) => void cards.selectRange(x0, x1 + 1)}
        point={(item, left) => setTip(item ? { text: item.title, left } : null)}
      >
        <span class="lane-label" aria-hidden="true">
          {phases.label}
        </span>
      </Lanes>
      {tip && (
        <p class="tooltip lane-tip" style={{ "--x": `${tip.left}px` }} data-testid="lane-tip">
          {tip.text}
        </p>
      )}
    </>
  );
}
