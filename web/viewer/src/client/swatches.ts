// CSS colors from the view's module, once that is initialized.

import { Swatches } from "../../wasm/vramscope_view.js";

/** Maximum number of cached CSS colors per theme. */
const MAX_COLORS = 4096;

/** CSS colors of a theme by color word, cached: a string from wasm costs more than a lookup. */
export function swatches(dark: boolean): (color: number) => string {
  const palette = new Swatches(dark);
  const known = new Map<number, string>();
  return (color) => {
    let css = known.get(color);
    if (css === undefined) {
      css = palette.css(color);
      if (known.size === MAX_COLORS) known.clear();
      known.set(color, css);
    }
    return css;
  };
}
