import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ASK_MS, MAX_UNANSWERED, Watchdog } from "./watchdog.js";

const MINUTE = ASK_MS * (MAX_UNANSWERED + 2);

let ask: ReturnType<typeof vi.fn<() => void>>;
let silent: ReturnType<typeof vi.fn<() => void>>;
let dog: Watchdog;

beforeEach(() => {
  vi.useFakeTimers();
  [ask, silent] = [vi.fn(), vi.fn()];
  dog = new Watchdog({ ask, silent });
});

afterEach(() => {
  vi.useRealTimers();
});

test("a worker that stops answering is given up after a minute, once", () => {
  dog.heard(true);
  dog.given();
  vi.advanceTimersByTime(ASK_MS * MAX_UNANSWERED);
  expect(silent).not.toHaveBeenCalled();
  vi.advanceTimersByTime(MINUTE);
  expect(silent).toHaveBeenCalledTimes(1);
  expect(ask).toHaveBeenCalledTimes(MAX_UNANSWERED);
});

test("a worker that answers may take any time", () => {
  ask.mockImplementation(() => dog.heard(false));
  dog.heard(true);
  dog.given();
  vi.advanceTimersByTime(10 * MINUTE);
  expect(silent).not.toHaveBeenCalled();
});

test("an idle worker is not asked", () => {
  dog.given();
  dog.heard(true);
  vi.advanceTimersByTime(MINUTE);
  expect(ask).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test("a worker whose script has not arrived is not given up", () => {
  dog.given();
  vi.advanceTimersByTime(10 * MINUTE);
  expect(silent).not.toHaveBeenCalled();
});

test("an ended worker is not asked", () => {
  dog.heard(true);
  dog.given();
  dog.end();
  vi.advanceTimersByTime(MINUTE);
  expect(ask).not.toHaveBeenCalled();
});
