// Accessibility checks by axe.

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect } from "./test.js";

export const THEMES = ["light", "dark"] as const;

type Theme = (typeof THEMES)[number];

/**
 * Expects no violation of axe's rules: of `any` impact, or of `serious` and critical impact only.
 * The light theme is checked by all rules. The dark theme has the same elements, so only the rules
 * about colors check it.
 */
export async function expectNoBarrier(
  page: Page,
  theme: Theme,
  what: string,
  which: "any" | "serious" = "serious",
  /** A selector within the viewer; all of the page without one. */
  within: string | null = null,
) {
  const axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"] });
  if (within !== null) axe.include({ fromShadowDom: ["vramscope-viewer", within] });
  if (theme === "dark") axe.withRules(["color-contrast", "link-in-text-block"]);
  const { violations } = await axe.analyze();
  const grave = violations.filter(
    ({ impact }) => which === "any" || impact === "serious" || impact === "critical",
  );
  expect(
    grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`),
    `${what}, ${theme}`,
  ).toEqual([]);
}
