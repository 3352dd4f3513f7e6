// Places the numbers of steps in the lane of phases.

import type { PhaseItem, Phases } from "../generated/protocol.js";
import type { Laid, LaneItem } from "./track-items.js";

/** The least distance between numbers, in columns. */
const NUMBER_COLUMNS = 3;

/** An item further behind the start of its step is not covered by the number, in columns. */
const FAR = 9;

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
  const numbers = numbersOf(items, column);
  let start = Number.NEGATIVE_INFINITY;
  const laid = items.map((item, index) => {
    const number = numbers[index] ?? "";
    if (number !== "") start = item.x0;
    const lead = Math.min(FAR, (item.x0 - start) / column);
    return { ...item, lane: 0, text: item.title, number, lead };
  });
  return { ...stretch, items: laid };
}

/** The number that each item shows. */
function numbersOf(items: readonly PhaseItem[], column: number): string[] {
  const every = intervalOf(items, column);
  let next = Number.POSITIVE_INFINITY;
  const numbers = items.toReversed().map((item) => {
    if (item.step === "" || stepOf(item) % every !== 0) return "";
    const hasRoom = next - item.x0 >= NUMBER_COLUMNS * column;
    next = item.x0;
    return hasRoom ? item.step : "";
  });
  return numbers.reverse();
}

const stepOf = ({ step }: PhaseItem) => Number(step.replaceAll(",", ""));

/** The interval of steps with a number: 1, 2, 5, 10, 20 and so on. */
function intervalOf(items: readonly PhaseItem[], column: number): number {
  const begun = items.filter(({ step }) => step !== "");
  const [first, last] = [begun[0], begun.at(-1)];
  if (!first || !last || first === last) return 1;
  const width = (last.x0 - first.x0) / (stepOf(last) - stepOf(first));
  const least = (NUMBER_COLUMNS * column) / width;
  if (least <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((every) => every * power >= least) ?? 10);
}
