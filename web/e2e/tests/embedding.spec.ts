// The element in somebody else's page: several of them, wherever its parts lie, gone when it is gone; and addresses that name
// snapshots.

import { test as base, expect, type Page } from "@playwright/test";
import type { MemstrataViewer, openAddresses, openViewer, ViewerOptions } from "memstrata-viewer";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { drawn, example } from "../lib/examples.js";
import { contexts, warmed, workers } from "../lib/faults.js";
import { type Folder, serveFolder } from "../lib/folder.js";
import { later } from "../lib/work.js";

declare global {
  interface Window {
    /** What the tests' page imports. */
    package: { openViewer: typeof openViewer; openAddresses: typeof openAddresses };
  }
}

const BARE = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>A page</title>
<style>body { display: grid; grid-auto-flow: column; height: 100vh; margin: 0 }</style><body>
<div id="a"></div><div id="b"></div>
<script type="module">window.package = await import("/memstrata/dist/client/standalone.js");</script>`;

const F01 = testData("scenarios/f01.pickle");
const F02 = testData("scenarios/f02.pickle");

interface Hands {
  /** The package as a copy on a server, and an empty page. */
  host: Folder;
  wrong: string[];
}

const test = base.extend<Hands>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads what is asked for from the pattern
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

async function bare(page: Page, host: Folder, hash = ""): Promise<void> {
  await page.goto(host.at(`/bare${hash}`));
  await page.waitForFunction(() => "package" in window);
}

/** Opens a viewer in an element of the page, with these addresses. */
const open = (page: Page, id: string, urls: string[], options: Omit<ViewerOptions, "files"> = {}) =>
  page.evaluate(
    async ([into, files, more]) => {
      const container = document.getElementById(into);
      if (container) await window.package.openViewer(container, { ...more, ...(files.length > 0 && { files }) });
    },
    [id, urls, options] as const,
  );

const peakIn = (page: Page, id: string) => page.locator(`#${id}`).getByTestId("peak-value");
const peakOf = (file: string) => String(deviceOf(file).requested_bytes.peak);

test("two viewers on a page have files, views, themes and events of their own, and one goes without the other", async ({
  page,
  host,
}) => {
  await bare(page, host);
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    for (const id of ["a", "b"]) {
      document.getElementById(id)?.addEventListener("memstrata-loaded", (event) => {
        heard.push(`${id} ${(event as CustomEvent<{ path: string }>).detail.path}`);
      });
    }
  });
  await open(page, "a", ["/data/scenarios/f01.pickle"], { theme: "dark", title: "one" });
  await open(page, "b", ["/data/scenarios/f02.pickle"], { theme: "light", view: "segments" });
  await expect(peakIn(page, "a")).toHaveAttribute("data-value", peakOf(F01));
  await expect(page.locator("#b [data-view=segments]")).toHaveAttribute("data-place", "main");
  await expect(page.locator("#a h1")).toHaveText("one");
  await expect(page.locator("#a .app")).toHaveAttribute("data-theme", "dark");
  await expect(page.locator("#b .app")).toHaveAttribute("data-theme", "light");
  await drawn(page, "#a memstrata-viewer");
  await expect
    .poll(() => page.evaluate(() => (window as unknown as { heard: string[] }).heard.toSorted()))
    .toEqual(["a f01.pickle", "b f02.pickle"]);
  await page.evaluate(() => document.querySelector("#a memstrata-viewer")?.remove());
  await page.evaluate(() => {
    const [left] = document.getElementsByTagName("memstrata-viewer");
    left?.setAttribute("view", "timeline");
    left?.setAttribute("theme", "dark");
  });
  await expect(peakIn(page, "b")).toHaveAttribute("data-value", peakOf(F02));
  await expect(page.locator("#b .app")).toHaveAttribute("data-theme", "dark");
});

test("twenty viewers come and go, and leave neither workers nor GL contexts", async ({ page, host, wrong }) => {
  test.setTimeout(180_000);
  const alive = await contexts(page);
  const its = await workers(page);
  await bare(page, host);
  for (let round = 0; round < 20; round += 1) {
    await open(page, "a", ["/data/scenarios/f01.pickle"]);
    await drawn(page);
    // Segments have a canvas of their own, below.
    await expect.poll(alive).toBe(2);
    const before = await page.evaluate(() => {
      const { started } = (window as unknown as { workers: { started: number } }).workers;
      const viewer = document.querySelector("memstrata-viewer");
      // Both ways to end one.
      viewer?.destroy();
      viewer?.remove();
      return started;
    });
    await expect(page.locator("memstrata-viewer")).toHaveCount(0);
    await expect.poll(alive).toBe(0);
    // Ending starts none, not even to end it at once. What has ended is counted a moment later.
    await expect.poll(its).toEqual({ started: before, alive: 0 });
  }
  // That there are too many contexts is a warning of the browser's.
  expect(wrong).toEqual([]);
});

test("a file that is read again for all views is read again once, however late their scripts come", async ({
  page,
  host,
}) => {
  const [views, first, again] = [later<void>(), later<void>(), later<void>()];
  const asked: string[] = [];
  await page.route("**/standalone-workspace.js", async (route) => {
    await views.promise;
    await route.continue();
  });
  await page.route("**/f01.pickle", async (route) => {
    asked.push(route.request().url());
    await (asked.length === 1 ? first : again).promise;
    await route.continue();
  });
  await page.addInitScript(() => {
    const compile = WebAssembly.compileStreaming;
    WebAssembly.compileStreaming = async (...how) => {
      const module = await compile(...how);
      performance.mark("compiled");
      return module;
    };
  });
  const its = await workers(page);
  await bare(page, host);
  const opened = open(page, "a", ["/data/scenarios/f01.pickle"]);
  // The view's, the small one, and the one that answers all views: it is there before the file, their scripts are not.
  await page.waitForFunction(() => performance.getEntriesByName("compiled").length === 3);
  first.resolve();
  await opened;
  await expect.poll(() => asked.length).toBe(2);
  views.resolve();
  await expect(page.locator("[data-view=segments]")).toBeVisible();
  again.resolve();
  // Beside those two readers: a coordinator, another that answers all views, and a warm one for the next drop.
  await expect.poll(its).toEqual({ started: 5, alive: 3 });
  expect(asked).toHaveLength(2);
  await page.evaluate(() => document.querySelector("memstrata-viewer")?.destroy());
  await expect.poll(its).toEqual({ started: 5, alive: 0 });
});

test("a page that is not all its own loses no GL context to a viewer without a file", async ({ page, host }) => {
  const alive = await contexts(page);
  await bare(page, host);
  await page.evaluate(async () => {
    const viewer = document.createElement("memstrata-viewer");
    document.getElementById("a")?.append(viewer);
    await viewer.ready;
  });
  // All that is made early has been made.
  await expect.poll(() => warmed(page)).toBe(1);
  expect(await alive()).toBe(0);
});

test("an element that is put elsewhere begins anew there", async ({ page, host }) => {
  await bare(page, host);
  await open(page, "a", ["/data/scenarios/f01.pickle"]);
  await expect(peakIn(page, "a")).toBeVisible();
  await page.evaluate(async () => {
    const viewer = document.querySelector("memstrata-viewer");
    if (!viewer) throw new Error("there is no viewer");
    document.getElementById("b")?.append(viewer);
    await viewer.load(["/data/scenarios/f02.pickle"]);
  });
  await expect(peakIn(page, "b")).toHaveAttribute("data-value", peakOf(F02));
});

test("the package may lie on another origin, its worker too", async ({ page, host }) => {
  const cdn = await serveFolder(example("plain"), { headers: { "Access-Control-Allow-Origin": "*" } });
  await bare(page, host);
  await page.evaluate(
    async (from) => {
      const { openViewer: openThere } = (await import(`${from}dist/client/standalone.js`)) as Window["package"];
      await openThere(document.body, {
        files: ["/data/scenarios/f01.pickle"],
        workerUrl: `${from}dist/client/worker.js`,
      });
    },
    cdn.at("/memstrata/", "localhost"),
  );
  await drawn(page);
  await expect(page.getByTestId("peak-value")).toHaveAttribute("data-value", peakOf(F01));
  await expect(page.getByTestId("segments-canvas")).toBeVisible();
  await cdn.stop();
});

test("wasm that is not where it is said to be is told to who waits for it", async ({ page, host }) => {
  await bare(page, host);
  const said = await page.evaluate(() =>
    window.package.openViewer(document.body, { wasmUrl: "/nowhere/" }).then(
      () => "ready",
      (error: Error) => error.message,
    ),
  );
  expect(said).toMatch(/\/nowhere\/memstrata_.*_bg\.wasm answered 404/);
  await expect(page.locator("memstrata-viewer")).toHaveCount(0);
});

test("a viewer that has gone before its wasm fails to come starts no worker any more", async ({ page, host }) => {
  const held = later<void>();
  await page.route("**/*_bg.wasm", async (route) => {
    await held.promise;
    await route.fulfill({ status: 404, body: "not here" });
  });
  const its = await workers(page);
  await bare(page, host);
  await page.evaluate(() => {
    const said = window.package.openViewer(document.body).catch((error: Error) => error.message);
    Object.assign(window, { said });
    document.querySelector("memstrata-viewer")?.remove();
  });
  const before = await its();
  expect(before.started).toBeGreaterThan(0);
  held.resolve();
  expect(await page.evaluate(() => (window as unknown as { said: Promise<string> }).said)).toContain("answered 404");
  expect(await its()).toEqual(before);
});

test("a worker that is not where it is said to be is told on the page", async ({ page, host }) => {
  await bare(page, host);
  await open(page, "a", ["/data/scenarios/f01.pickle"], { workerUrl: "/nowhere/worker.js" });
  await expect(page.getByRole("alert")).toContainText("/nowhere/worker.js");
});

test("a worker of another version is refused in words", async ({ page, host }) => {
  await page.route("**/old/version.js", (route) =>
    route.fulfill({ contentType: "text/javascript", body: 'export const VERSION = "0.0.1";' }),
  );
  const copied = (path: string) =>
    host.at(path.replace("/old/", "/memstrata/dist/").replace("/wasm/", "/memstrata/wasm/"));
  for (const part of ["**/old/client/*.js", "**/wasm/*.js"]) {
    await page.route(part, async (route) => {
      const { pathname } = new URL(route.request().url());
      if (pathname.startsWith("/memstrata/")) await route.continue();
      else await route.fulfill({ response: await route.fetch({ url: copied(pathname) }) });
    });
  }
  await bare(page, host);
  await open(page, "a", ["/data/scenarios/f01.pickle"], { workerUrl: "/old/client/worker.js" });
  await expect(page.getByRole("alert")).toContainText("0.0.1");
  // Another worker may still be asked for.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("readonly and embedded: nothing to open, and embedded has no name and no theme of its own", async ({
  page,
  host,
}) => {
  await bare(page, host);
  await open(page, "a", []);
  await expect(page.locator("#a").getByTestId("open-files")).toBeAttached();
  for (const [options, theme] of [
    [{ readonly: true }, 1],
    [{ mode: "embedded" }, 0],
  ] as const) {
    await page.evaluate(() => document.querySelector("#b memstrata-viewer")?.remove());
    await open(page, "b", [], options);
    const viewer = page.locator("#b memstrata-viewer");
    await expect(viewer.getByText("No snapshot is open.")).toBeVisible();
    await viewer.evaluate((element) => (element as MemstrataViewer).load(["/data/scenarios/f01.pickle"]));
    await expect(viewer.getByTestId("peak-value")).toBeVisible();
    await expect(viewer.getByRole("tab", { name: "Timeline" })).toBeVisible();
    await expect(viewer.locator("input[type=file]")).toHaveCount(0);
    await expect(viewer.getByRole("button", { name: /^Theme/ })).toHaveCount(theme);
    await expect(viewer.locator(".brand")).toHaveCount(theme);
  }
  // Files that are dropped on a viewer that is only to be looked at are none of its business.
  await page.evaluate(() => document.querySelector("#b memstrata-viewer")?.setAttribute("readonly", ""));
  const taken = await page.locator("#b .app").evaluate((element) => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "x.pickle"));
    return !element.dispatchEvent(
      new DragEvent("drop", { dataTransfer: data, bubbles: true, composed: true, cancelable: true }),
    );
  });
  expect(taken).toBe(false);
});

test("colours, type and parts are the page's to choose", async ({ page, host }) => {
  await bare(page, host);
  await page.addStyleTag({
    content: `memstrata-viewer { --memstrata-accent: rgb(1, 2, 3); --memstrata-size: 17px; }
      memstrata-viewer::part(details) { background: rgb(4, 5, 6); }`,
  });
  await open(page, "a", ["/data/scenarios/f01.pickle"]);
  const viewer = page.locator("#a memstrata-viewer");
  await expect(viewer.getByTestId("details")).toHaveCSS("background-color", "rgb(4, 5, 6)");
  await expect(viewer.locator(".app")).toHaveCSS("font-size", "17px");
  const accent = await viewer.locator(".app").evaluate((app) => getComputedStyle(app).getPropertyValue("--accent"));
  expect(accent.trim()).toBe("rgb(1, 2, 3)");
  for (const part of ["header", "main", "details"]) await expect(viewer.locator(`[part=${part}]`)).toHaveCount(1);
});

test.describe("#url=", () => {
  const addresses = (page: Page) =>
    page.evaluate(async () => {
      const viewer = await window.package.openViewer(document.body);
      window.package.openAddresses(viewer);
    });
  const row = (page: Page, path: string) => page.locator(`[data-testid=rank-row][data-path="${path}"]`);

  test("opens what the address names, from here and from elsewhere", async ({ page, host }) => {
    const other = await serveFolder(null, { headers: { "Access-Control-Allow-Origin": "*" } });
    const there = other.at("/data/scenarios/f02.pickle", "localhost");
    await bare(page, host, `#view=timeline&url=/data/scenarios/f01.pickle&url=${encodeURIComponent(there)}`);
    await addresses(page);
    for (const [name, file] of [
      ["f01.pickle", F01],
      ["f02.pickle", F02],
    ] as const) {
      await expect(row(page, name)).toHaveAttribute("data-state", "ready");
      await expect(row(page, name).locator("[data-value]")).toHaveAttribute("data-value", peakOf(file));
    }
    // Another link in the same tab.
    await page.evaluate(() => {
      location.hash = "url=/data/scenarios/f06.pickle";
    });
    await expect(row(page, "f06.pickle")).toHaveAttribute("data-state", "ready");
    await expect(row(page, "f01.pickle")).toHaveCount(0);
    await other.stop();
  });

  test("a server that does not allow it is told from one that is not there, as far as that can be told", async ({
    page,
    host,
  }) => {
    const other = await serveFolder(null);
    const there = other.at("/data/scenarios/f02.pickle", "localhost");
    const missing = host.at("/data/missing.pickle");
    const all = [there, missing, "http://[", "/data/%E0%A4%A.pickle", "/data/scenarios/f01.pickle"];
    await bare(page, host, `#${all.map((url) => `url=${encodeURIComponent(url)}`).join("&")}`);
    await addresses(page);
    await expect(row(page, "f02.pickle")).toContainText("could not be fetched");
    await row(page, "f02.pickle").click();
    const words = page.getByTestId("view-timeline");
    await expect(words).toContainText(`Access-Control-Allow-Origin: ${new URL(host.at("/")).origin}`);
    await expect(words).toContainText("memstrata serve");
    await expect(row(page, "missing.pickle")).toContainText("404");
    await expect(row(page, "http://[")).toHaveAttribute("data-state", "error");
    await expect(row(page, "f01.pickle")).toHaveAttribute("data-state", "ready");
    await other.stop();
  });
});
