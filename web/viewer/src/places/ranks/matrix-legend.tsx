// The scale of the matrix: steps of color below and above the median of a row.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Matrix } from "../../generated/protocol.js";
import { type CellColors, colorOf, colorsOf, css } from "./matrix-picture.js";

const LEVELS = [-4, -3, -2, -1, 0, 1, 2, 3, 4];

export function MatrixLegend({ matrix, dark }: { matrix: Matrix; dark: boolean }) {
  const box = useRef<HTMLSpanElement>(null);
  const [colors, setColors] = useState<CellColors | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors are those of the theme
  useLayoutEffect(() => {
    if (box.current) setColors(colorsOf(box.current));
  }, [dark]);
  const [least, most] = [matrix.bounds[0], matrix.bounds.at(-1)];
  const titleOf = (level: number) => {
    const bound = matrix.bounds[Math.abs(level) - 1];
    if (level === 0) return `within ${least} of the median of the row`;
    return `at least ${bound} ${level < 0 ? "less" : "more"} than the median of the row`;
  };
  return (
    <span class="matrix-legend" data-testid="matrix-legend" ref={box}>
      <span>{most} less</span>
      <span class="matrix-scale">
        {LEVELS.map((level) => (
          <i
            key={level}
            title={titleOf(level)}
            style={{ background: colors ? css(colorOf(level, colors)) : undefined }}
          />
        ))}
      </span>
      <span>{most} more than the median</span>
      <span class="matrix-none">
        <i /> none
      </span>
    </span>
  );
}
