// What axe knows of that keeps people with disabilities out.

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect } from "./test.js";

export const THEMES = ["light", "dark"] as const;

type Theme = (typeof THEMES)[number];

/**
 * Holds that there is no barrier on the page, `any` or only `serious` ones. In the light theme
 * everything is looked at; the dark one has the same elements with the same names, so there only
 * colors are.
 */
export async function expectNoBarrier(
  page: Page,
  theme: Theme,
  what: string,
  which: "any" | "serious" = "serious",
) {
  const axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"] });
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
