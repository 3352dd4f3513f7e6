// The element's styles as constructable sheets, which a content security policy allows.

import { chips } from "./chips.js";
import { controls } from "./controls.js";
import { details } from "./details.js";
import { landing } from "./landing.js";
import { layout } from "./layout.js";
import { panes } from "./panes.js";
import { plot } from "./plot.js";
import { rail } from "./rail.js";
import { tokens } from "./tokens.js";
import { verdict } from "./verdict.js";

export function sheetOf(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

/** New sheets in cascade order. */
export function styleSheets(): CSSStyleSheet[] {
  return [tokens, layout, panes, controls, chips, landing, rail, plot, details, verdict].map(
    sheetOf,
  );
}
