import { expect, test } from "vitest";
import type { Phases } from "../../generated/protocol.js";
import { laidOf, lanesOf, shadedOf } from "./phase-items.js";

/** Items of 10 slots per column: the first slot and the phase. */
function phases(items: [x0: number, phase: string][], steps: number[]): Phases {
  const ends = (places: readonly number[], index: number) => places[index + 1] ?? 1000;
  const starts = items.map(([x0]) => x0);
  return {
    label: "steps",
    x0: 0,
    x1: 1000,
    columns: 100,
    items: items.map(([x0, phase], index) => {
      return { x0, x1: ends(starts, index), phase, step: "", title: `${phase} at ${x0}` };
    }),
    steps: steps.map((x0, index) => ({
      x0,
      x1: ends(steps, index),
      name: `step ${index}`,
      number: String(index),
      shaded: index % 2 === 1,
      title: `step ${index}: events`,
    })),
  };
}

const shown = (all: Phases) => laidOf(all)?.items.map(({ lane, x0, word }) => [lane, x0, word]);

test("steps are above their phases, and narrow ones show only their number", () => {
  const all = phases(
    [
      [0, "other"],
      [5, "forward"],
      [60, "backward"],
      [400, "forward"],
    ],
    [0, 60, 400],
  );
  expect(shown(all)).toEqual([
    [0, 0, "0"],
    [0, 60, "step 1"],
    [0, 400, "step 2"],
    [1, 0, ""],
    [1, 5, "forward"],
    [1, 60, "backward"],
    [1, 400, "forward"],
  ]);
  expect(lanesOf(all)).toBe(2);
});

test("where only steps or only phases are known, there is one lane", () => {
  const steps = phases(
    [
      [0, ""],
      [500, ""],
    ],
    [0, 500],
  );
  expect(shown(steps)).toEqual([
    [0, 0, "step 0"],
    [0, 500, "step 1"],
  ]);
  expect(lanesOf(steps)).toBe(1);
  const only = phases([[0, "forward"]], []);
  expect(shown(only)).toEqual([[0, 0, "forward"]]);
  expect(lanesOf(only)).toBe(1);
});

test("every second step has the other ground", () => {
  expect([...shadedOf(phases([], [0, 100, 300, 700]))]).toEqual([100, 300, 700, 1000]);
  expect([...shadedOf(null)]).toEqual([]);
});

test("nothing without items", () => {
  expect(laidOf(null)).toBeNull();
  expect(laidOf(phases([], []))).toBeNull();
});
