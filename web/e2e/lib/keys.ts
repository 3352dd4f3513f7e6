// Helpers of tests that press keys.

import { expect, type Locator, type Page } from "@playwright/test";
import type { BlockRow } from "./cli.js";
import type { Viewer } from "./viewer.js";

/** Holds a key, "w" or "Shift+KeyW", until `done` returns true. */
export async function hold(page: Page, key: string, done: () => Promise<boolean>): Promise<void> {
  const [name = "", shift] = key.split("+").toReversed();
  if (shift) await page.keyboard.down(shift);
  await page.keyboard.down(name);
  await expect.poll(done, { intervals: [30] }).toBe(true);
  await page.keyboard.up(name);
  if (shift) await page.keyboard.up(shift);
}

/** Opens the palette and waits until it has the keyboard. */
export async function openPalette(page: Page): Promise<Locator> {
  const palette = page.getByRole("dialog", { name: "Commands" });
  await page.keyboard.press(">");
  await expect(palette.getByRole("combobox")).toBeFocused();
  return palette;
}

/** A block that lives for 5 % to 25 % of the trace. */
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

/** The byte axis on screen: pixels per MiB, and the position of zero. */
export async function heights(viewer: Viewer): Promise<{ zoom: number; zero: number }> {
  const { y } = await viewer.plot.scale();
  return { zoom: y(0) - y(1 << 20), zero: y(0) };
}
