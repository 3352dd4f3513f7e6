import { expect, test } from "vitest";
import type { Row } from "../../run.js";
import { type Candidate, counterpart, pairOf } from "./compare-pair.js";

/** A row as the module reads it. */
const row = (file: number, rank: number | null, group = ""): Row =>
  ({ file: { planned: { file, rank, group } }, part: 0, label: String(file) }) as unknown as Row;

const of = (peaks: (number | null)[], ranks: (number | null)[]): Candidate[] =>
  peaks.map((peak, file) => ({
    row: row(file, ranks[file] ?? null),
    peak: peak === null ? null : BigInt(peak),
  }));

const labels = (pair: ReturnType<typeof pairOf>) => pair?.map(({ label }) => label);

test("files are compared with the one that was opened first", () => {
  expect(pairOf(of([5], [null]))).toBeNull();
  expect(labels(pairOf(of([5, 9, 7], [null, null, null])))).toEqual(["0", "1"]);
  // Rows are sorted by name, files are numbered as they were opened.
  const sorted = of([5, 9], [null, null]).toReversed();
  expect(labels(pairOf(sorted))).toEqual(["0", "1"]);
});

test("ranks are compared with the median, the farthest first", () => {
  expect(labels(pairOf(of([10, 11, 30, 12], [0, 1, 2, 3])))).toEqual(["1", "2"]);
  expect(labels(pairOf(of([10, 11, 1, 12, 10], [0, 1, 2, 3, 4])))).toEqual(["4", "2"]);
  // Two ranks have no median, and unread ranks do not count.
  expect(labels(pairOf(of([10, 30], [0, 1])))).toEqual(["0", "1"]);
  expect(labels(pairOf(of([10, null, 30], [0, 1, 2])))).toEqual(["0", "1"]);
});

test("ranks of two folders are compared rank by rank", () => {
  const rows = [row(0, 0, "a"), row(1, 1, "a"), row(2, 0, "b"), row(3, 1, "b")];
  const [baseline, , , last] = rows as [Row, Row, Row, Row];
  expect(labels(pairOf(rows.map((one) => ({ row: one, peak: 1n }))))).toEqual(["0", "1"]);
  expect(counterpart(rows, baseline, last).label).toBe("1");
  expect(counterpart(rows, baseline, rows[1] as Row).label).toBe("0");
});
