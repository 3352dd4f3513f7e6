// The head of the matrix: clusters of like ranks as brackets, and the ranks.

import type { Matrix } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";
import { LABEL_FROM } from "./matrix-picture.js";

/** Wider clusters have their whole name, in CSS pixels. */
const NAMED_FROM = 70;

/** The width of a digit in a rank's label, and the least gap between two labels, in CSS pixels. */
const DIGIT = 7;
const GAP = 4;

/**
 * The columns with a label: all if there is room, else those of outliers. The cursor's wins over
 * labels that it would cover, and an earlier one over a later one.
 */
function labeled({ columns }: Matrix, width: number, current: number | null): number[] {
  const each = width / columns.length;
  const half = (column: number) => ((columns[column]?.label.length ?? 0) * DIGIT + GAP) / 2;
  const apart = (a: number, b: number) => Math.abs(a - b) * each >= half(a) + half(b);
  const shown: number[] = [];
  const hasRoom = (column: number) =>
    (current === null || apart(column, current)) && shown.every((other) => apart(column, other));
  for (const [column, { outlier }] of columns.entries()) {
    const isWanted = each >= LABEL_FROM || (outlier !== "" && hasRoom(column));
    if (column === current || isWanted) shown.push(column);
  }
  return shown;
}

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
  return (
    <>
      <div class="matrix-corner">
        <span>{matrix.byStep ? "step" : "call site"}</span>
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
        {labeled(matrix, width, current).map((column) => {
          const { label = "", outlier = "" } = columns[column] ?? {};
          return (
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
          );
        })}
      </div>
    </>
  );
}

type RowsProperties = ViewUses<"viewSelection"> & { matrix: Matrix };

/** What the rows of the matrix are. */
export function MatrixRows({ viewSelection, matrix }: RowsProperties) {
  return (
    <fieldset class="segmented" aria-label="Rows">
      {[false, true].map((steps) => (
        <button
          key={String(steps)}
          type="button"
          aria-pressed={matrix.byStep === steps}
          onClick={() => {
            viewSelection.bySteps.value = steps;
          }}
        >
          {steps ? "Steps" : "Call sites"}
        </button>
      ))}
    </fieldset>
  );
}
