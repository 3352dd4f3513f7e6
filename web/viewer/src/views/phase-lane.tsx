// The steps and their phases below the timeline, in one lane.

import { useMemo, useState } from "preact/hooks";
import type { PhaseItem, Phases } from "../generated/protocol.js";
import { Lanes } from "./lanes.js";
import type { Dress, Laid, LaneItem } from "./track-items.js";
import type { ViewUses } from "./workspace.js";

/** Narrower steps show no number, in columns. */
const MIN_NUMBERED_COLUMNS = 3;

interface Item extends PhaseItem, LaneItem {
  /** The step's number, if it has room. */
  number: string;
  /** Columns between the start of the step and the item, which the number may cover. */
  lead: number;
}

const DRESS: Dress<Item> = {
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

/** The items as those of one lane. */
export function laidOf(phases: Phases | null): Laid<Item> | null {
  if (phases === null || phases.items.length === 0) return null;
  const { items, ...stretch } = phases;
  const column = (stretch.x1 - stretch.x0) / stretch.columns;
  const laid: Item[] = [];
  let start = Number.NEGATIVE_INFINITY;
  let end = Number.POSITIVE_INFINITY;
  for (const item of items.toReversed()) {
    const isWide = end - item.x0 >= MIN_NUMBERED_COLUMNS * column;
    const number = isWide ? item.step : "";
    laid.push({ ...item, lane: 0, text: item.title, number, lead: 0 });
    if (item.step !== "") end = item.x0;
  }
  for (const item of laid.reverse()) {
    if (item.step !== "") start = item.number === "" ? Number.NEGATIVE_INFINITY : item.x0;
    item.lead = Math.min(9, (item.x0 - start) / column);
  }
  return { ...stretch, items: laid };
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
