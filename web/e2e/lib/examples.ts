// The apps of web/examples, built by `cargo xtask examples` with the packed viewer.

import { existsSync, readdirSync, readFileSync } from "node:fs";
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

/** The wasm file of a part in the built site. */
export function wasmOf(part: "view" | "worker"): Buffer {
  const assets = join(site, "assets");
  const name = readdirSync(assets).find((file) => file.startsWith(`vramscope_${part}_bg`));
  if (name === undefined) throw new Error(`${assets} has no wasm of the ${part}`);
  return readFileSync(join(assets, name));
}

/** Waits until a viewer has drawn strips. */
export async function drawn(page: Page, selector = "vramscope-viewer"): Promise<void> {
  await expect
    .poll(() =>
      page.locator(selector).evaluate((element) => (element as VramscopeViewer).stats().strips),
    )
    .toBeGreaterThan(0);
}
