// The element's style, as constructable sheets: they need no permission for inline styles.

import { controls } from "./controls.js";
import { details } from "./details.js";
import { landing } from "./landing.js";
import { layout } from "./layout.js";
import { plot } from "./plot.js";
import { rail } from "./rail.js";
import { tokens } from "./tokens.js";

/** New sheets, in the order in which they cascade. */
export function styleSheets(): CSSStyleSheet[] {
  return [tokens, layout, controls, landing, rail, plot, details].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
}
