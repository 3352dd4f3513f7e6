// The items of the lanes of steps and phases.

import type { PhaseItem, Phases, StepItem } from "../../generated/protocol.js";
import type { Laid, LaneItem } from "./track-items.js";

/** A step's full name needs this width, in columns. */
const NAME_COLUMNS = 9;

/** A step or a phase with its word. */
export interface LaneEntry extends LaneItem {
  /** The phase, `step`, or empty for several phases. */
  kind: string;
  /** The word that is shown where it fits. */
  word: string;
  /** Whether a step has the other ground. */
  shaded: boolean;
}

/** The steps in one lane, and below it their phases. Null without either. */
export function laidOf(phases: Phases | null): Laid<LaneEntry> | null {
  if (phases === null || phases.items.length + phases.steps.length === 0) return null;
  const { x0, x1, columns, steps } = phases;
  const column = (x1 - x0) / columns;
  const below = steps.length > 0 ? 1 : 0;
  // Where only steps are known, the items of phases repeat them.
  const items = hasPhases(phases) ? phases.items : [];
  return {
    x0,
    x1,
    columns,
    items: [
      ...steps.map((step) => stepEntry(step, column)),
      ...items.map((item) => phaseEntry(item, below)),
    ],
  };
}

/** The number of lanes. */
export const lanesOf = (phases: Phases) =>
  (phases.steps.length > 0 ? 1 : 0) + (hasPhases(phases) ? 1 : 0);

/** Several phases in one item have no phase, so any item of the stretch may tell. */
const hasPhases = ({ items, steps }: Phases) =>
  steps.length === 0 || items.some(({ phase }) => phase !== "") || items.length > steps.length;

function stepEntry({ x0, x1, name, number, shaded, title }: StepItem, column: number): LaneEntry {
  const word = x1 - x0 >= NAME_COLUMNS * column ? name : number;
  return { lane: 0, x0, x1, text: title, kind: "step", word, shaded };
}

function phaseEntry({ x0, x1, phase, title }: PhaseItem, lane: number): LaneEntry {
  const word = phase === "other" ? "" : phase;
  return { lane, x0, x1, text: title, kind: phase, word, shaded: false };
}

/** The edges of steps with the other ground, for the plot. */
export const shadedOf = (phases: Phases | null) =>
  new Float64Array(
    (phases?.steps ?? []).filter(({ shaded }) => shaded).flatMap(({ x0, x1 }) => [x0, x1]),
  );
