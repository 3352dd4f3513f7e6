// A copy of the package on another server, with an empty host page that opens viewers.

import { test as base, type Page } from "@playwright/test";
import type { openAddresses, openViewer, ViewerOptions } from "vramscope-viewer";
import { example } from "./examples.js";
import { type Folder, serveFolder } from "./folder.js";

declare global {
  interface Window {
    /** The module that the host page imports. */
    package: { openViewer: typeof openViewer; openAddresses: typeof openAddresses };
  }
}

const BARE = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>A page</title>
<style>body { display: grid; grid-auto-flow: column; height: 100vh; margin: 0 }</style><body>
<div id="a"></div><div id="b"></div>
<script type="module">
window.package = await import("/vramscope/dist/client/standalone.js");
</script>`;

interface Fixtures {
  /** The server of package and host page. */
  host: Folder;
  wrong: string[];
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  host: async ({}, use) => {
    const host = await serveFolder(example("plain"), { pages: { "/bare": BARE } });
    await use(host);
    await host.stop();
  },
  wrong: async ({ page }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(`uncaught: ${error.message}`));
    page.on("console", (message) => wrong.push(`${message.type()}: ${message.text()}`));
    await use(wrong);
  },
});

/** Opens the empty host page. */
export async function bare(page: Page, host: Folder, hash = ""): Promise<void> {
  await page.goto(host.at(`/bare${hash}`));
  await page.waitForFunction(() => "package" in window);
}

/** Opens a viewer in the element `id` on its timeline, with the files at these addresses. */
export const open = (
  page: Page,
  id: string,
  urls: string[],
  options: Omit<ViewerOptions, "files"> = {},
) =>
  page.evaluate(
    async ([into, files, more]) => {
      const container = document.getElementById(into);
      if (container)
        await window.package.openViewer(container, {
          view: "timeline",
          ...more,
          ...(files.length > 0 && { files }),
        });
    },
    [id, urls, options] as const,
  );
