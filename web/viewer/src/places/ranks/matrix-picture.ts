// Draws the cells of the matrix of ranks on a 2D canvas, and finds the cell at a point.

import { inkOn } from "../../client/swatches.js";
import type { Matrix } from "../../generated/protocol.js";

/** Height of a row in CSS pixels. */
export const ROW = 20;
/** Wider columns have gaps between them, and a label each, in CSS pixels. */
const GAP_FROM = 6;
export const LABEL_FROM = 24;
/** Wider columns have their bytes written in them, in CSS pixels. */
const TEXT_FROM = 62;
/** The share of the strong color at each step from the median. */
const STRENGTHS = [0, 0.2, 0.42, 0.68, 1];
/** The letter of a cell near the median, and that of one without bytes. */
const MIDDLE = "e".charCodeAt(0);
const NONE = "-";

type Rgb = readonly [number, number, number];

/** The colors of the theme. */
export interface CellColors {
  below: Rgb;
  above: Rgb;
  middle: Rgb;
  none: Rgb;
}

const rgbOf = (hex: string): Rgb => {
  const word = Number.parseInt(hex.trim().slice(1), 16);
  return [word >> 16, (word >> 8) & 255, word & 255];
};

/** Reads the colors from the styles of an element. */
export function colorsOf(element: Element): CellColors {
  const style = getComputedStyle(element);
  const of = (name: string) => rgbOf(style.getPropertyValue(name));
  return {
    below: of("--cell-below"),
    above: of("--cell-above"),
    middle: of("--cell-middle"),
    none: of("--cell-none"),
  };
}

/** The color of a step: -4 far below the median to 4 far above it; null for none. */
export function colorOf(level: number | null, colors: CellColors): Rgb {
  if (level === null) return colors.none;
  const strong = level < 0 ? colors.below : colors.above;
  const share = STRENGTHS[Math.abs(level)] ?? 1;
  const mix = (at: 0 | 1 | 2) => Math.round(strong[at] * share + colors.middle[at] * (1 - share));
  return [mix(0), mix(1), mix(2)];
}

export const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`;

/** The step of a cell; null for none. */
function levelOf({ levels, columns }: Matrix, row: number, column: number): number | null {
  const letter = levels[row * columns.length + column];
  return letter === undefined || letter === NONE ? null : letter.charCodeAt(0) - MIDDLE;
}

/** The columns that lie in `wide` pixels from `x`, of a picture that is `width` wide. */
function columnsAt(count: number, x: number, wide: number, width: number): [number, number] {
  const from = Math.min(count - 1, Math.floor((x * count) / width));
  return [from, Math.max(from + 1, Math.min(count, Math.ceil(((x + wide) * count) / width)))];
}

/**
 * The column at a place of a row. Where several columns share a pixel, the one that differs most
 * from the median counts: it is the one that is drawn.
 */
function columnAt(matrix: Matrix, row: number, x: number, wide: number, width: number): number {
  const count = matrix.columns.length;
  if (count <= width / wide) return columnsAt(count, x, wide, width)[0];
  const [from, to] = columnsAt(count, x, wide, width);
  let best = from;
  const weight = (column: number) => Math.abs(levelOf(matrix, row, column) ?? -0.5);
  for (let column = from + 1; column < to; column += 1)
    if (weight(column) > weight(best)) best = column;
  return best;
}

/** The cell at a point in CSS pixels; null outside. */
export function cellAt(
  matrix: Matrix,
  { x, y, width }: { x: number; y: number; width: number },
): { row: number; column: number } | null {
  const row = Math.floor(y / ROW);
  if (row < 0 || row >= matrix.rows.length || x < 0 || x >= width) return null;
  return { row, column: columnAt(matrix, row, x, 1, width) };
}

/** Draws all cells. `width` is in CSS pixels. */
export function drawMatrix(
  canvas: HTMLCanvasElement,
  matrix: Matrix,
  width: number,
  colors: CellColors,
): void {
  const scale = window.devicePixelRatio || 1;
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(rows * ROW * scale));
  const context = canvas.getContext("2d");
  if (!context || rows === 0 || columns === 0) return;
  // One line of pixels per row, each of the column that differs most there.
  const pixels = new ImageData(canvas.width, rows);
  for (let row = 0; row < rows; row += 1) {
    for (let x = 0; x < canvas.width; x += 1) {
      const column = columnAt(matrix, row, x, 1, canvas.width);
      const [r, g, b] = colorOf(levelOf(matrix, row, column), colors);
      pixels.data.set([r, g, b, 255], (row * canvas.width + x) * 4);
    }
  }
  const lines = document.createElement("canvas");
  lines.width = canvas.width;
  lines.height = rows;
  lines.getContext("2d")?.putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(lines, 0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = css(colors.none);
  for (let row = 1; row <= rows; row += 1) context.fillRect(0, row * ROW - 1, width, 1);
  const wide = width / columns;
  if (wide < GAP_FROM) return;
  for (let column = 1; column < columns; column += 1)
    context.fillRect(Math.round(column * wide) - 0.5, 0, 1, rows * ROW);
  if (wide < TEXT_FROM || matrix.cells.length === 0) return;
  const { fontFamily } = getComputedStyle(canvas);
  context.font = `11px ${fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [index, text] of matrix.cells.entries()) {
    const [row, column] = [Math.floor(index / columns), index % columns];
    context.fillStyle = inkOn(colorOf(levelOf(matrix, row, column), colors));
    context.fillText(text, (column + 0.5) * wide, row * ROW + ROW / 2);
  }
}
