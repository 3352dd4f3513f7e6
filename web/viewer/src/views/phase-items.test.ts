import { expect, test } from "vitest";
import type { Phases } from "../generated/protocol.js";
import { laidOf } from "./phase-items.js";

/** Phases of 10 slots per column: the first slot, the phase, and the number of a step. */
function phases(items: [x0: number, phase: string, step: string][]): Phases {
  const place = items.map(([x0, phase, step], index) => {
    const [x1 = 1000] = items[index + 1] ?? [];
    return { x0, x1, phase, step, title: `${step} ${phase}` };
  });
  return { label: "steps", x0: 0, x1: 1000, columns: 100, items: place };
}

const shown = (all: Phases) =>
  laidOf(all)?.items.map(({ x0, number, lead }) => [x0, number, Math.round(lead * 10) / 10]);

test("a number is on the first item of its step, and says how far others are behind it", () => {
  const all = phases([
    [0, "other", "0"],
    [5, "forward", ""],
    [60, "backward", ""],
    [400, "forward", "1"],
    [600, "backward", ""],
  ]);
  expect(shown(all)).toEqual([
    [0, "0", 0],
    [5, "", 0.5],
    [60, "", 6],
    [400, "1", 0],
    [600, "", 9],
  ]);
});

test("a narrow step among wide ones has no number, and covers nothing", () => {
  const all = phases([
    [0, "forward", "0"],
    [29, "forward", "1"],
    [50, "backward", ""],
    [89, "forward", "2"],
  ]);
  expect(shown(all)).toEqual([
    [0, "", 9],
    [29, "1", 0],
    [50, "", 2.1],
    [89, "2", 0],
  ]);
});

test("of narrow steps, every second, fifth or tenth has a number", () => {
  const steps = (width: number) =>
    phases(Array.from({ length: 31 }, (_, step) => [step * width, "forward", String(step)]));
  const numbers = (width: number) =>
    shown(steps(width))?.flatMap(([, number]) => (number === "" ? [] : [number]));
  expect(numbers(30)?.slice(0, 3)).toEqual(["0", "1", "2"]);
  expect(numbers(20)?.slice(0, 3)).toEqual(["0", "2", "4"]);
  expect(numbers(10)?.slice(0, 3)).toEqual(["0", "5", "10"]);
  expect(numbers(3)).toEqual(["0", "10", "20", "30"]);
});

test("nothing without items", () => {
  expect(laidOf(null)).toBeNull();
  expect(laidOf(phases([]))).toBeNull();
});
