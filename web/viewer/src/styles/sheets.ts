// The element's styles as constructable sheets, which a content security policy allows.

import colors from "../generated/colors.css.js";
import chips from "./chips.css.js";
import controls from "./controls.css.js";
import details from "./details.css.js";
import landing from "./landing.css.js";
import layout from "./layout.css.js";
import panes from "./panes.css.js";
import plot from "./plot.css.js";
import rail from "./rail.css.js";
import tokens from "./tokens.css.js";

export function sheetOf(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

/** New sheets in cascade order. */
export function styleSheets(): CSSStyleSheet[] {
  return [colors, tokens, layout, panes, controls, chips, landing, rail, plot, details].map(
    sheetOf,
  );
}
