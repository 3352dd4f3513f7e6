//! TypeScript types of the objects. `TileKey` and `Axis` match the types of the worker's protocol.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface TileKey { kx: number; ky: number; ix: number; iy: number }
export interface Axis {
  kind: "event" | "time" | "weight";
  extent: number;
  origin: number;
  peak: number;
}
/**
 * The y axis: bytes, or rows of `rowUnits` each and `units` in total, with the first row at the
 * top. A row is at least `least` CSS pixels high, and `most` when all rows fit. Zooming makes rows
 * higher, unless both are equal.
 */
export type PlotKind =
  | "bytes"
  | { rows: { units: number; rowUnits: number; least: number; most: number } };
/** In slots and bytes, or units of rows. */
export interface Area { x0: number; x1: number; y0: number; y1: number }
/** A slot, and a height in bytes or units of rows. */
export interface Place { x: number; y: number }
/** `pos` in CSS pixels of the canvas, from the left or from the top. */
export interface Label { pos: number; text: string }
export interface Labels {
  x: Label[];
  y: Label[];
  /** The upper left corner of the label, in CSS pixels of the canvas. */
  peak: { x: number; y: number; text: string } | null;
  plot: { left: number; top: number; width: number; height: number };
}
export interface Hit {
  block: number;
  merged: boolean;
  /** The strip's color word. */
  color: number;
  /** Whether the strip has a hit of the search. True for all without a search. */
  lit: boolean;
  slot: number;
  bytes: number;
  kx: number;
  ky: number;
}
export interface Stats {
  /** Drawn strips. */
  strips: number;
  /** Drawn strips, lines and marks. */
  instances: number;
  drawCalls: number;
  frameCpuMs: { p50: number; p95: number };
  tiles: number;
}
"#;
