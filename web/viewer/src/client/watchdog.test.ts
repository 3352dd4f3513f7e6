import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ASK_MS, MAX_UNANSWERED, NEW_ASK_MS, Watchdog } from "./watchdog.js";

const MINUTE = ASK_MS * (MAX_UNANSWERED + 2);

let ask: ReturnType<typeof vi.fn<() => void>>;
let silent: ReturnType<typeof vi.fn<(unused: boolean) => void>>;
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
  dog.given(false);
  vi.advanceTimersByTime(ASK_MS * MAX_UNANSWERED);
  expect(silent).not.toHaveBeenCalled();
  vi.advanceTimersByTime(MINUTE);
  expect(silent.mock.calls).toEqual([[false]]);
  expect(ask).toHaveBeenCalledTimes(MAX_UNANSWERED);
});

test("a worker that answers may take any time", () => {
  ask.mockImplementation(() => dog.heard(false));
  dog.heard(true);
  dog.given(false);
  vi.advanceTimersByTime(10 * MINUTE);
  expect(silent).not.toHaveBeenCalled();
});

test("an idle worker is not asked", () => {
  dog.given(false);
  dog.heard(true);
  vi.advanceTimersByTime(MINUTE);
  expect(ask).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test("a worker whose script has not arrived is not given up", () => {
  dog.given(false);
  vi.advanceTimersByTime(10 * MINUTE);
  expect(silent).not.toHaveBeenCalled();
});

test("an ended worker is not asked", () => {
  dog.heard(true);
  dog.given(false);
  dog.end();
  vi.advanceTimersByTime(MINUTE);
  expect(ask).not.toHaveBeenCalled();
});

test("a worker that ended while idle is given up two seconds after it is given a file", () => {
  dog.heard(true);
  vi.advanceTimersByTime(MINUTE);
  dog.given(true);
  expect(ask).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(2 * NEW_ASK_MS - 1);
  expect(silent).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(silent.mock.calls).toEqual([[true]]);
  vi.advanceTimersByTime(2 * MINUTE);
  expect(silent).toHaveBeenCalledTimes(1);
});

test("a worker that answers before a long file is not given up", () => {
  dog.heard(true);
  dog.given(true);
  vi.advanceTimersByTime(NEW_ASK_MS);
  dog.heard(true);
  vi.advanceTimersByTime(ASK_MS * MAX_UNANSWERED - NEW_ASK_MS);
  expect(silent).not.toHaveBeenCalled();
});

test("a worker that is busy with a long request is not asked before the next one", () => {
  dog.heard(true);
  dog.given(true);
  dog.heard(false);
  dog.given(true);
  expect(ask).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(ASK_MS * MAX_UNANSWERED);
  expect(silent).not.toHaveBeenCalled();
});

test("a worker that is given a file before its script has arrived is not asked at once", () => {
  dog.given(true);
  vi.advanceTimersByTime(2 * NEW_ASK_MS);
  expect(ask).not.toHaveBeenCalled();
  expect(silent).not.toHaveBeenCalled();
});
