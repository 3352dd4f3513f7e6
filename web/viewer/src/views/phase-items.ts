// Places the numbers of steps in the lane of phases.

import type { PhaseItem, Phases } from "../generated/protocol.js";
import type { Laid, LaneItem } from "./track-items.js";

/** Narrower steps show no number, in columns. */
const MIN_NUMBERED_COLUMNS = 3;

/** A phase with the number that it shows. */
export interface NumberedPhase extends PhaseItem, LaneItem {
  /** The step's number, if it has room. */
  number: string;
  /** Columns between the start of the step and the item, which the number may cover. */
  lead: number;
}

/** The items as those of one lane. */
export function laidOf(phases: Phases | null): Laid<NumberedPhase> | null {
  if (phases === null || phases.items.length === 0) return null;
  const { items, ...stretch } = phases;
  const column = (stretch.x1 - stretch.x0) / stretch.columns;
  const laid: NumberedPhase[] = [];
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
