// The element in a host page: several viewers, places of its files, styles, and #url= addresses.

import { expect, type Page } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { blocksOf, deviceOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { bare, open, test } from "../lib/embedded.js";
import { drawn, example } from "../lib/examples.js";
import { serveFolder } from "../lib/folder.js";

const F01 = testData("scenarios/f01.pickle");
const F02 = testData("scenarios/f02.pickle");

const peakIn = (page: Page, id: string) => page.locator(`#${id}`).getByTestId("peak-value");
const peakOf = (file: string) => String(deviceOf(file).requested_bytes.peak);

test("two viewers on a page are independent, and a moved viewer starts again", async ({
  page,
  host,
}) => {
  await bare(page, host);
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    for (const id of ["a", "b"]) {
      document.getElementById(id)?.addEventListener("vramscope-loaded", (event) => {
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
  await drawn(page, "#a vramscope-viewer");
  await expect
    .poll(() => page.evaluate(() => (window as unknown as { heard: string[] }).heard.toSorted()))
    .toEqual(["a f01.pickle", "b f02.pickle"]);
  await page.evaluate(() => document.querySelector("#a vramscope-viewer")?.remove());
  await page.evaluate(() => {
    const [left] = document.getElementsByTagName("vramscope-viewer");
    left?.setAttribute("view", "timeline");
    left?.setAttribute("theme", "dark");
  });
  await expect(peakIn(page, "b")).toHaveAttribute("data-value", peakOf(F02));
  await expect(page.locator("#b .app")).toHaveAttribute("data-theme", "dark");
  // A viewer that is moved to another parent starts again.
  await page.evaluate(async () => {
    const [viewer] = document.getElementsByTagName("vramscope-viewer");
    if (!viewer) throw new Error("the second viewer is gone");
    document.getElementById("a")?.append(viewer);
    await viewer.load(["/data/scenarios/f01.pickle"]);
  });
  await expect(peakIn(page, "a")).toHaveAttribute("data-value", peakOf(F01));
});

test("package and worker can come from another origin", async ({ page, host }) => {
  const cdn = await serveFolder(example("plain"), {
    headers: { "Access-Control-Allow-Origin": "*" },
  });
  await bare(page, host);
  await page.evaluate(
    async (from) => {
      const { openViewer: openThere } = (await import(
        `${from}dist/client/standalone.js`
      )) as Window["package"];
      await openThere(document.body, {
        files: ["/data/scenarios/f01.pickle"],
        view: "timeline",
        workerUrl: `${from}dist/client/worker.js`,
      });
    },
    cdn.at("/vramscope/", "localhost"),
  );
  await drawn(page);
  await expect(page.getByTestId("peak-value")).toHaveAttribute("data-value", peakOf(F01));
  await page.getByRole("tab", { name: "Allocator" }).click();
  await expect(page.getByTestId("map-canvas")).toBeVisible();
  await cdn.stop();
});

test("a wrong wasmUrl rejects openViewer, and a wrong workerUrl is reported on the page", async ({
  page,
  host,
}) => {
  await bare(page, host);
  await test.step("wasmUrl", async () => {
    const said = await page.evaluate(() =>
      window.package.openViewer(document.body, { wasmUrl: "/nowhere/" }).then(
        () => "ready",
        (error: Error) => error.message,
      ),
    );
    expect(said).toMatch(/\/nowhere\/vramscope_.*_bg\.wasm answered 404/);
    await expect(page.locator("vramscope-viewer")).toHaveCount(0);
  });
  await test.step("workerUrl", async () => {
    await open(page, "a", ["/data/scenarios/f01.pickle"], { workerUrl: "/nowhere/worker.js" });
    await expect(page.getByRole("alert")).toContainText("/nowhere/worker.js");
  });
});

test("a worker of another version is refused with its version", async ({ page, host }) => {
  await page.route("**/old/version.js", (route) =>
    route.fulfill({ contentType: "text/javascript", body: 'export const VERSION = "0.0.1";' }),
  );
  const copied = (path: string) =>
    host.at(path.replace("/old/", "/vramscope/dist/").replace("/wasm/", "/vramscope/wasm/"));
  for (const part of ["**/old/client/*.js", "**/wasm/*.js"]) {
    await page.route(part, async (route) => {
      const { pathname } = new URL(route.request().url());
      if (pathname.startsWith("/vramscope/")) await route.continue();
      else await route.fulfill({ response: await route.fetch({ url: copied(pathname) }) });
    });
  }
  await bare(page, host);
  await open(page, "a", ["/data/scenarios/f01.pickle"], { workerUrl: "/old/client/worker.js" });
  await expect(page.getByRole("alert")).toContainText("0.0.1");
  // Requests for a spare worker may be pending.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("readonly and embedded viewers open no files, and embedded ones have no header", async ({
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
    await page.evaluate(() => document.querySelector("#b vramscope-viewer")?.remove());
    await open(page, "b", [], options);
    const viewer = page.locator("#b vramscope-viewer");
    await expect(viewer.getByText("No snapshot is open.")).toBeVisible();
    await viewer.evaluate((element) =>
      (element as VramscopeViewer).load(["/data/scenarios/f01.pickle"]),
    );
    await expect(viewer.getByTestId("timeline-canvas")).toBeVisible();
    await expect(viewer.getByRole("tab", { name: "Timeline" })).toBeVisible();
    await expect(viewer.locator("input[type=file]")).toHaveCount(0);
    await expect(viewer.getByRole("button", { name: /^Theme/ })).toHaveCount(theme);
    await expect(viewer.locator(".brand")).toHaveCount(theme);
  }
  // A readonly viewer leaves dropped files to the page.
  await page.evaluate(() =>
    document.querySelector("#b vramscope-viewer")?.setAttribute("readonly", ""),
  );
  const taken = await page.locator("#b .app").evaluate((element) => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "x.pickle"));
    return !element.dispatchEvent(
      new DragEvent("drop", {
        dataTransfer: data,
        bubbles: true,
        composed: true,
        cancelable: true,
      }),
    );
  });
  expect(taken).toBe(false);
});

test("the host page can style colors, font size and parts", async ({ page, host }) => {
  await bare(page, host);
  await page.addStyleTag({
    content: `vramscope-viewer { --vramscope-accent: rgb(1, 2, 3); --vramscope-size: 17px; }
      vramscope-viewer::part(details) { background: rgb(4, 5, 6); }`,
  });
  await open(page, "a", ["/data/scenarios/f01.pickle"]);
  const viewer = page.locator("#a vramscope-viewer");
  // The panel is there while something is selected.
  const [block] = blocksOf(F01);
  if (!block) throw new Error("no block");
  await expect(peakIn(page, "a")).toHaveAttribute("data-value", peakOf(F01));
  await viewer.evaluate(
    (element, reference) => (element as VramscopeViewer).select(reference),
    referenceOf(block),
  );
  await expect(viewer.getByTestId("details")).toHaveCSS("background-color", "rgb(4, 5, 6)");
  await expect(viewer.locator(".app")).toHaveCSS("font-size", "17px");
  const accent = await viewer
    .locator(".app")
    .evaluate((app) => getComputedStyle(app).getPropertyValue("--accent"));
  expect(accent.trim()).toBe("rgb(1, 2, 3)");
  for (const part of ["header", "main", "details"])
    await expect(viewer.locator(`[part=${part}]`)).toHaveCount(1);
});

test.describe("#url=", () => {
  const addresses = (page: Page) =>
    page.evaluate(async () => {
      // The page is the viewer's: with the places of others it has no room for the rows.
      document.body.replaceChildren();
      const viewer = await window.package.openViewer(document.body, { view: "timeline" });
      window.package.openAddresses(viewer);
    });
  const row = (page: Page, path: string) =>
    page.locator(`[data-testid=rank-row][data-path="${path}"]`);

  test("opens files of this and of another origin", async ({ page, host }) => {
    const other = await serveFolder(null, { headers: { "Access-Control-Allow-Origin": "*" } });
    const there = other.at("/data/scenarios/f02.pickle", "localhost");
    await bare(
      page,
      host,
      `#view=timeline&url=/data/scenarios/f01.pickle&url=${encodeURIComponent(there)}`,
    );
    await addresses(page);
    for (const [name, file] of [
      ["f01.pickle", F01],
      ["f02.pickle", F02],
    ] as const) {
      await expect(row(page, name)).toHaveAttribute("data-state", "ready");
      await expect(row(page, name).locator("[data-value]")).toHaveAttribute(
        "data-value",
        peakOf(file),
      );
    }
    // Another link in the same tab.
    await page.evaluate(() => {
      location.hash = "url=/data/scenarios/f06.pickle";
    });
    await expect(row(page, "f06.pickle")).toHaveAttribute("data-state", "ready");
    await expect(row(page, "f01.pickle")).toHaveCount(0);
    await other.stop();
  });

  test("explains a server that does not allow the page to read its files", async ({
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
    const words = page.locator(".pane[data-place=main]");
    await expect(words).toContainText(
      `Access-Control-Allow-Origin: ${new URL(host.at("/")).origin}`,
    );
    await expect(words).toContainText("vramscope serve");
    await expect(row(page, "missing.pickle")).toContainText("404");
    await expect(row(page, "http://[")).toHaveAttribute("data-state", "error");
    await expect(row(page, "f01.pickle")).toHaveAttribute("data-state", "ready");
    await other.stop();
  });
});
