import { signal } from "@preact/signals";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Address } from "../address.js";
import type { ViewState } from "../view-state.js";
import { REST_MS, ViewHistory } from "./history.js";

/** The state of a view at a place. */
const at = (x0: number, path = "a.pickle") => ({ path, x0 }) as ViewState;

const shown = signal(at(0));
let history: ViewHistory;

const rest = () => vi.advanceTimersByTime(REST_MS);

/** Shows views, each for long enough to be remembered. */
function visit(...places: number[]): void {
  for (const place of places) {
    shown.value = at(place);
    rest();
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  shown.value = at(0);
  const address = {
    place: () => shown.value,
    restore: (state: ViewState) => {
      shown.value = state;
    },
  };
  history = new ViewHistory(address as unknown as Address);
  rest();
});

afterEach(() => {
  history.destroy();
  vi.useRealTimers();
});

test("it goes back and forward through views that rested", () => {
  visit(1, 2);
  for (const [by, x0] of [
    [-1, 1],
    [-1, 0],
    [-1, 0],
    [1, 1],
    [1, 2],
    [1, 2],
  ] as const) {
    history.go(by);
    rest();
    expect(shown.value.x0, `after ${by}`).toBe(x0);
  }
});

test("a view that passes is not remembered, and the current one is at once", () => {
  visit(1);
  shown.value = at(2);
  vi.advanceTimersByTime(REST_MS - 1);
  shown.value = at(3);
  history.go(-1);
  expect(shown.value.x0).toBe(1);
  history.go(1);
  expect(shown.value.x0).toBe(3);
});

test("another view after a step back replaces those ahead", () => {
  visit(1, 2);
  history.go(-1);
  rest();
  visit(5);
  history.go(1);
  expect(shown.value.x0).toBe(5);
  history.go(-1);
  expect(shown.value.x0).toBe(1);
});

test("a restored view that is rounded is no other view", () => {
  visit(1, 2);
  history.go(-1);
  shown.value = at(1.001);
  rest();
  history.go(1);
  expect(shown.value.x0).toBe(2);
});

test("without a file there is nothing to go back to", () => {
  shown.value = {} as ViewState;
  rest();
  visit(1);
  history.go(-1);
  expect(shown.value.path).toBe("a.pickle");
});
