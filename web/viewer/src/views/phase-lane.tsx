// The steps and their phases below the timeline, in one lane.

import { useMemo, useState } from "preact/hooks";
import { Lanes } from "./lanes.js";
import { laidOf, type NumberedPhase } from "./phase-items.js";
import type { Dress } from "./track-items.js";
import type { ViewUses } from "./workspace.js";

const DRESS: Dress<NumberedPhase> = {
  button(button, { phase, step, number, lead, text }) {
    Object.assign(button, { ariaLabel: text });
    button.setAttribute("data-phase", phase);
    button.toggleAttribute("data-step", step !== "");
    if (number === "") button.removeAttribute("data-number");
    else button.setAttribute("data-number", number);
    button.style.setProperty("--lead", lead.toFixed(1));
  },
  // The word is shown where it fits whole: what does not fit wraps.
  name(name, { phase }) {
    const word = name.appendChild(document.createElement("span"));
    word.textContent = phase === "other" ? "" : phase;
  },
};

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
