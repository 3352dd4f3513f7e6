// What the tests of keys share. All of them are in tests/keys-*.spec.ts, and a test there holds
// them to the sheet of keys.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, type Locator, type Page } from "@playwright/test";
import type { BlockRow } from "./cli.js";
import type { Viewer } from "./viewer.js";

/** What a test says of the keys that it is of, as the sheet prints them. */
export const keys = (...shown: string[]) => ({
  annotation: { type: "keys", description: shown.join("  ") },
});

/**
 * The keys of all such tests, read from their files: a test does not know of those in other files.
 */
export function testedKeys(): Set<string> {
  const folder = fileURLToPath(new URL("../tests/", import.meta.url));
  const files = readdirSync(folder).filter((name) => name.startsWith("keys-"));
  const text = /"(?:[^"\\]|\\.)+"/g;
  const lists = new RegExp(`,\\s*keys\\(((?:${text.source}[,\\s]*)+)\\),\\s*async`, "g");
  const all = files.flatMap((name) => [...readFileSync(folder + name, "utf8").matchAll(lists)]);
  return new Set(
    all.flatMap(([, list = ""]) => (list.match(text) ?? []).map((key): string => JSON.parse(key))),
  );
}

/** Holds a key, with Shift where it is told, until something has come of it. */
export async function hold(page: Page, key: string, done: () => Promise<boolean>): Promise<void> {
  const [name = "", shift] = key.split("+").toReversed();
  if (shift) await page.keyboard.down(shift);
  await page.keyboard.down(name);
  await expect.poll(done, { intervals: [30] }).toBe(true);
  await page.keyboard.up(name);
  if (shift) await page.keyboard.up(shift);
}

/** The palette, once it has the keyboard. */
export async function openPalette(page: Page): Promise<Locator> {
  const palette = page.getByRole("dialog", { name: "Commands" });
  await page.keyboard.press(">");
  await expect(palette.getByRole("combobox")).toBeFocused();
  return palette;
}

/** A block that is neither short nor the whole trace, so that there is something to fit. */
export function middling(
  blocks: BlockRow[],
  events: number,
): BlockRow & { alloc_event: number; free_completed_event: number } {
  for (const block of blocks) {
    const { alloc_event, free_completed_event } = block;
    if (alloc_event === null || free_completed_event === null) continue;
    const life = free_completed_event - alloc_event;
    if (life > events / 20 && life < events / 4)
      return { ...block, alloc_event, free_completed_event };
  }
  throw new Error("no such block");
}

/** How bytes lie on the screen: pixels a MiB, and where zero is. */
export async function heights(viewer: Viewer): Promise<{ zoom: number; zero: number }> {
  const { y } = await viewer.plot.scale();
  return { zoom: y(0) - y(1 << 20), zero: y(0) };
}
