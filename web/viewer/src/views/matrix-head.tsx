// The head of the matrix: clusters of like ranks as brackets, and the ranks.

import type { Matrix } from "../generated/protocol.js";
import { LABEL_FROM } from "./matrix-picture.js";

/** Wider clusters have their whole name, in CSS pixels. */
const NAMED_FROM = 70;

/** `0-3, 8` for `ranks 0-3, 8`. */
const shortOf = (text: string) => text.replace(/^ranks? /, "");

interface HeadProperties {
  matrix: Matrix;
  /** Width of the cells in CSS pixels. */
  width: number;
  /** The column of the cursor. */
  column: number | null;
}

export function MatrixHead({ matrix, width, column: current }: HeadProperties) {
  const { clusters, columns } = matrix;
  const part = (count: number) => `${(count / columns.length) * 100}%`;
  const isWide = width / columns.length >= LABEL_FROM;
  return (
    <>
      <div class="matrix-corner">
        <span>call site</span>
        <span>median</span>
        <span>most</span>
      </div>
      <div class="matrix-head">
        {clusters.map(({ first, count, text }) => (
          <span
            key={first}
            class="matrix-cluster"
            data-testid="matrix-cluster"
            title={`${text}: like ranks`}
            style={{ left: part(first), width: part(count) }}
          >
            <span>{(count * width) / columns.length < NAMED_FROM ? shortOf(text) : text}</span>
          </span>
        ))}
        {columns.map(({ label, outlier }, column) =>
          isWide || outlier !== "" || column === current ? (
            <span
              key={label}
              class="matrix-rank"
              data-testid="matrix-rank"
              data-outlier={outlier !== ""}
              data-at={column === current}
              title={outlier === "" ? `rank ${label}` : outlier}
              style={{ left: part(column + 0.5) }}
            >
              {label}
            </span>
          ) : null,
        )}
      </div>
    </>
  );
}
