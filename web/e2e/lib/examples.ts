// The apps of web/examples, built by `cargo xtask examples` with the packed viewer.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, type Page } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";

const HERE = fileURLToPath(new URL("../", import.meta.url));
const { EXAMPLES } = process.env;
const BUILT = resolve(HERE, EXAMPLES ?? "../../target/examples");

/** The folder with the pages of an app. */
export function example(name: string): string {
  const folder = join(BUILT, name, "dist");
  if (!existsSync(folder)) throw new Error(`${folder} is missing: run cargo xtask examples`);
  return folder;
}

/** The built site. */
export const site = resolve(HERE, "../site/dist");

/** Waits until a viewer has drawn strips. */
export async function drawn(page: Page, selector = "vramscope-viewer"): Promise<void> {
  await expect
    .poll(() =>
      page.locator(selector).evaluate((element) => (element as VramscopeViewer).stats().strips),
    )
    .toBeGreaterThan(0);
}
