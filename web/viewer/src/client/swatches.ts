// CSS colors from the view's module, once that is initialized.

import { Swatches } from "../../wasm/vramscope_view.js";

/** Maximum number of cached CSS colors per theme, of each kind. */
const MAX_COLORS = 4096;

/** CSS colors of a theme by color word. */
export interface ThemeColors {
  swatch(color: number): string;
  /** The color of a label on a color. */
  ink(color: number): string;
}

export function themeColors(dark: boolean): ThemeColors {
  const palette = new Swatches(dark);
  return {
    swatch: cached((color) => palette.css(color)),
    ink: cached((color) => palette.ink(color)),
  };
}

/** The color of a label on a color of three bytes. */
export const inkOn = ([red, green, blue]: readonly [number, number, number]): string =>
  Swatches.inkOn(red, green, blue);

/** Caches a lookup: a string from wasm costs more than a map. */
function cached(find: (color: number) => string): (color: number) => string {
  const known = new Map<number, string>();
  return (color) => {
    let css = known.get(color);
    if (css === undefined) {
      css = find(color);
      if (known.size === MAX_COLORS) known.clear();
      known.set(color, css);
    }
    return css;
  };
}
