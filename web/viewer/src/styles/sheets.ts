// The element's style, as constructable sheets: they need no permission for inline styles.

import { controls } from "./controls.js";
import { details } from "./details.js";
import { landing } from "./landing.js";
import { layout } from "./layout.js";
import { panes } from "./panes.js";
import { plot } from "./plot.js";
import { rail } from "./rail.js";
import { tokens } from "./tokens.js";

export function sheetOf(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

/** New sheets, in the order in which they cascade. */
export function styleSheets(): CSSStyleSheet[] {
  return [tokens, layout, panes, controls, landing, rail, plot, details].map(sheetOf);
}
