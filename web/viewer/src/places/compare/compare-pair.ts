// Which two rows of a run are compared unless the user chooses.

import type { Row } from "../../run.js";

/** A row of a run and its peak; no peak while it is unread. */
export interface Candidate {
  row: Row;
  peak: bigint | null;
}

/** The fewest ranks that have a usual peak. */
const MIN_RANKS = 3;

/**
 * The baseline and the row that is compared with it. Among the ranks of one run they are the rank
 * with the median peak, and the one that differs most from it. Among other files they are the
 * first one that was opened, and the next.
 */
export function pairOf(candidates: readonly Candidate[]): [a: Row, b: Row] | null {
  const opened = candidates
    .map(({ row }) => row)
    .toSorted((x, y) => x.file.planned.file - y.file.planned.file || x.part - y.part);
  const [first, next] = opened;
  if (!first || !next) return null;
  const group = first.file.planned.group;
  const areRanks = opened.every(
    ({ file: { planned } }) => planned.rank !== null && planned.group === group,
  );
  return (areRanks && ofRanks(candidates)) || [first, next];
}

function ofRanks(candidates: readonly Candidate[]): [Row, Row] | null {
  const known = candidates.flatMap(({ row, peak }) => (peak === null ? [] : [{ row, peak }]));
  if (known.length < MIN_RANKS) return null;
  const sorted = known.toSorted((x, y) => Number(x.peak - y.peak));
  const median = sorted[Math.floor((sorted.length - 1) / 2)];
  if (!median) return null;
  const distance = (peak: bigint) => (peak < median.peak ? median.peak - peak : peak - median.peak);
  const others = known.filter((one) => one !== median);
  const farthest = others.reduce((far, one) =>
    distance(one.peak) > distance(far.peak) ? one : far,
  );
  return [median.row, farthest.row];
}

/** The row of the baseline's group with the same rank as `of`, for two runs beside each other. */
export function counterpart(rows: readonly Row[], baseline: Row, of: Row): Row {
  const { group } = baseline.file.planned;
  const { rank, group: own } = of.file.planned;
  if (rank === null || group === own) return baseline;
  return (
    rows.find(({ file: { planned } }) => planned.group === group && planned.rank === rank) ??
    baseline
  );
}
