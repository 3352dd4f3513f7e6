// The frame around a selected block that is too low or too narrow to see.

import { type Place, placed } from "../../views/overlay.js";

/** The least height and width of a selection, in CSS pixels. */
const LEAST_SELECTED = 24;

/** A frame around a selected block that is too low or narrow to see. The canvas outlines others. */
export function SelectedBlock({ place }: { place: Place }) {
  const { left, top, width, height } = place;
  if (height >= LEAST_SELECTED && width >= LEAST_SELECTED) return null;
  const [wide, high] = [Math.max(LEAST_SELECTED, width), Math.max(LEAST_SELECTED, height)];
  const frame = {
    left: left - (wide - width) / 2,
    top: top - (high - height) / 2,
    width: wide,
    height: high,
  };
  const look = { border: "1.5px solid var(--accent)", borderRadius: "3px", zIndex: 3 };
  const bar = { position: "absolute", left: 0, right: 0, background: "var(--accent)" } as const;
  const middle = { top: `${(high - height) / 2 - 1.5}px`, height: `${Math.max(2, height)}px` };
  return (
    <div
      class="mark"
      data-kind="selected"
      data-testid="selected-block"
      style={{ ...placed(frame), ...look }}
    >
      <span style={{ ...bar, ...middle }} />
    </div>
  );
}
