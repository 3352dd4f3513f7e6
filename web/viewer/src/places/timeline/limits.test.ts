import { expect, test } from "vitest";
import type { Limit } from "../../generated/protocol.js";
import { marksTop } from "./limits.js";

const limitOf = (highs: readonly number[], far = false) =>
  ({ capacity: { raw: "50" }, far, requests: highs.map((high) => ({ high })) }) as unknown as Limit;

test("the line and all failed requests are in view", () => {
  expect(marksTop(null, limitOf([20, 80, 30]))).toBe(80);
  expect(marksTop(null, limitOf([20]))).toBe(50);
  expect(marksTop(null, limitOf([20], true))).toBe(20);
  expect(marksTop(90, limitOf([20], true))).toBe(90);
  expect(marksTop(null, null)).toBe(0);
});

test("any number of requests may have failed", () => {
  expect(marksTop(null, limitOf(new Array(200_000).fill(70)))).toBe(70);
});
