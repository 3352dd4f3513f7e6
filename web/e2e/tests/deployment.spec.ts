// The service worker while its host changes, without room for caches, and beside other sites of its
// origin.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import { testData } from "../lib/data.js";
import { type Hosted, host, kept } from "../lib/folder.js";
import { Viewer } from "../lib/viewer.js";

const GPT = testData("recorded/t26/gpt_small.pickle.gz");
const OTHER = "<!doctype html><title>other</title>";

const test = base.extend<{ path: string; hosted: Hosted }>({
  path: ["some/where", { option: true }],
  hosted: async ({ path }, use) => {
    const hosted = await host(path);
    await use(hosted);
    await hosted.stop();
  },
});

test.use({ serviceWorkers: "allow" });

/** Changes a file of the site. */
function edit(hosted: Hosted, name: string, from: RegExp, to: string): void {
  const path = join(hosted.folder, name);
  const text = readFileSync(path, "utf8");
  expect(text).toMatch(from);
  writeFileSync(path, text.replace(from, to));
}

async function visit(page: Page, hosted: Hosted): Promise<void> {
  await page.goto(hosted.address);
  await kept(page);
}

/** The paths in all caches. */
const cached = (page: Page) =>
  page.evaluate(async () => {
    const names = await caches.keys();
    const stored = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return stored.flat().map(({ url }) => new URL(url).pathname);
  });

/** Looks for a newer worker, and waits until it is installed or has failed. */
const update = (page: Page) =>
  page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    await registration.update();
    const next = registration.installing ?? registration.waiting;
    await new Promise<void>((resolve) => {
      const look = () => next?.state === "installing" || resolve();
      next?.addEventListener("statechange", look);
      look();
    });
    return next?.state ?? "none";
  });

test("a page whose files are not there yet does not replace the page that works offline", async ({
  page,
  hosted,
}) => {
  await visit(page, hosted);
  edit(hosted, "index.html", /<title>.*<\/title>/, "<title>newer</title>");
  edit(hosted, "index.html", /assets\/main-[\w-]+\.js/, "assets/main-newer.js");
  await page.goto(hosted.address);
  await expect(page).toHaveTitle("newer");
  await hosted.stop();
  await page.goto(hosted.address);
  await new Viewer(page).show(GPT);
});

for (const status of [404, 500, 503]) {
  test(`while the host answers ${status}, the cached version is shown, and kept`, async ({
    page,
    hosted,
  }) => {
    await visit(page, hosted);
    hosted.status = status;
    await page.goto(hosted.address);
    await new Viewer(page).show(GPT);
    // The script of the worker fails, too.
    await expect(update(page)).rejects.toThrow();
    hosted.status = null;
    edit(hosted, "sw.js", /VERSION="\w+"/, 'VERSION="newer"');
    edit(hosted, "sw.js", /"\.\/favicon\.svg"/, '"./missing.svg"');
    // A newer worker that cannot get its files leaves the older one in place.
    expect(await update(page)).toBe("redundant");
    await hosted.stop();
    await page.goto(hosted.address);
    await new Viewer(page).show(GPT);
  });
}

test("with full storage the page works, and its version stays", async ({ page, hosted }) => {
  await visit(page, hosted);
  const session = await page.context().newCDPSession(page);
  const { origin } = new URL(hosted.address);
  await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1 });
  await page.getByTestId("open-sample").click();
  const viewer = new Viewer(page);
  await expect(viewer.rows).toHaveCount(8);
  for (const row of await viewer.rows.all())
    await expect(row).toHaveAttribute("data-state", "ready");
  edit(hosted, "sw.js", /VERSION="\w+"/, 'VERSION="newer"');
  expect(await update(page)).toBe("redundant");
  await hosted.stop();
  await page.goto(hosted.address);
  await viewer.show(GPT);
});

test.describe("at the root of an origin", () => {
  test.use({ path: "" });

  test("other sites and snapshots are neither answered nor cached", async ({ page, hosted }) => {
    const other = join(hosted.folder, "other");
    mkdirSync(other);
    writeFileSync(join(other, "index.html"), OTHER);
    cpSync(testData("scenarios/f01.pickle"), join(other, "f01.pickle"));
    await visit(page, hosted);
    await page.goto(`${hosted.address}other/`);
    await page.evaluate(async () => {
      await (await caches.open("other v1")).put("data.json", new Response("{}"));
      await fetch("f01.pickle?run=1");
    });
    await page.goto(`${hosted.address}open/#url=../other/f01.pickle`);
    await new Viewer(page).expectRow("f01.pickle", "ready");
    // A newer version deletes the caches of the older one only.
    edit(hosted, "sw.js", /VERSION="\w+"/, 'VERSION="newer"');
    expect(await update(page)).toBe("installed");
    const names = () => page.evaluate(() => caches.keys());
    await expect
      .poll(async () => {
        await page.goto("about:blank");
        await page.goto(hosted.address);
        return names();
      })
      .toEqual(["other v1", "vramscope / newer"]);
    const paths = await cached(page);
    expect(paths.filter((path) => /other\/|\.pickle|\/open\//.test(path))).toEqual([
      "/other/data.json",
    ]);
    const byWorker = async (path: string) =>
      (await page.goto(hosted.address + path))?.fromServiceWorker();
    expect([await byWorker("record/"), await byWorker("other/")]).toEqual([true, false]);
  });
});

test("files are cached again after another site has deleted all caches", async ({
  page,
  hosted,
}) => {
  await visit(page, hosted);
  const before = await cached(page);
  await page.evaluate(async () => {
    for (const name of await caches.keys()) await caches.delete(name);
  });
  await page.goto(hosted.address);
  await expect.poll(() => cached(page)).toEqual(before);
  await hosted.stop();
  await page.goto(hosted.address);
  await new Viewer(page).show(GPT);
});
