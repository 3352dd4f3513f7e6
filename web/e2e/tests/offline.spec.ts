// The page on a static host: under any path, without a network after the first visit, never an old
// version, isolated where it is asked for.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { type Hosted, host } from "../lib/folder.js";
import { Viewer } from "../lib/viewer.js";

const GPT = testData("recorded/t26/gpt_small.pickle.gz");

const test = base.extend<{ hosted: Hosted }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  hosted: async ({}, use) => {
    const hosted = await host("some/where");
    await use(hosted);
    await hosted.stop();
  },
});

test.use({ serviceWorkers: "allow" });

/** The page is the worker's, and the worker has all it needs. */
async function kept(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    await new Promise<void>((resolve) => {
      if (active?.state === "activated") resolve();
      active?.addEventListener("statechange", () => active.state === "activated" && resolve());
    });
  });
  await expect
    .poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null))
    .toBe(true);
}

async function works(page: Page): Promise<void> {
  const viewer = new Viewer(page);
  await viewer.show(GPT);
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(GPT).requested_bytes.peak),
  );
  // The other views come too.
  await page.getByRole("tab", { name: "Flame" }).first().click();
  await expect(page.getByTestId("flame-canvas").first()).toBeVisible();
}

test("after the first visit it works without a network, also under a path", async ({
  page,
  hosted,
}) => {
  await page.goto(hosted.address);
  await kept(page);
  await hosted.stop();
  await page.reload();
  await works(page);
  // So does the page about recording, looks included.
  await page.goto(`${hosted.address}record/`);
  await expect(page.getByRole("button", { name: "Copy" })).toHaveCount(3);
  await expect(page.locator("h1")).toHaveCSS("font-size", "30px");
});

test("a new version is there with the next visit", async ({ page, hosted }) => {
  await page.goto(hosted.address);
  await kept(page);
  const index = join(hosted.folder, "index.html");
  writeFileSync(
    index,
    readFileSync(index, "utf8").replace(/<title>.*<\/title>/, "<title>newer</title>"),
  );
  const script = join(hosted.folder, "sw.js");
  writeFileSync(script, readFileSync(script, "utf8").replace(/VERSION="\w+"/, 'VERSION="newer"'));
  // The browser may still keep the page for as long as the host has said: the worker asks all the
  // same.
  await page.goto("about:blank");
  await page.goto(hosted.address);
  await expect(page).toHaveTitle("newer");
  // And what was kept of the old version goes, once no page of it is open.
  await page.evaluate(async () => {
    await (await navigator.serviceWorker.ready).update();
  });
  const caches_ = () =>
    page.evaluate(async () => (await caches.keys()).filter((name) => !name.endsWith("newer")));
  await expect
    .poll(async () => {
      await page.goto("about:blank");
      await page.goto(hosted.address);
      return caches_();
    })
    .toEqual([]);
});

test("/isolated/ is isolated on a host that sends no headers", async ({ page, hosted }) => {
  await page.goto(hosted.address);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  await page.goto(`${hosted.address}isolated/`);
  await expect
    .poll(() =>
      page
        .evaluate(() => crossOriginIsolated && navigator.serviceWorker.controller !== null)
        .catch(() => false),
    )
    .toBe(true);
  await works(page);
});

test("it can be installed", async ({ page, hosted }) => {
  await page.goto(hosted.address);
  await kept(page);
  const session = await page.context().newCDPSession(page);
  const { errors } = await session.send("Page.getAppManifest");
  expect(errors).toEqual([]);
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  // A private window has nothing to install into; that is all that is in the way.
  expect(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito")).toEqual([]);
});

test("the page that opens addresses may ask for them, and nothing else may be sent", async ({
  page,
  hosted,
}) => {
  const refused: string[] = [];
  page.on("console", (message) => message.type() === "error" && refused.push(message.text()));
  const elsewhere = await host();
  const url = `${elsewhere.address.replace("127.0.0.1", "localhost")}index.html`;
  await page.goto(hosted.address);
  const attempt = () =>
    page.evaluate(
      (address) =>
        fetch(address, { mode: "no-cors" }).then(
          () => "asked",
          () => "refused",
        ),
      url,
    );
  expect(await attempt()).toBe("refused");
  expect(elsewhere.asked).toEqual([]);
  await page.goto(`${hosted.address}open/`);
  await works(page);
  expect(await attempt()).toBe("asked");
  // Neither page loads code or pictures from elsewhere, or sends forms.
  for (const path of ["", "open/"]) {
    await page.goto(`${hosted.address}${path}`);
    const before = elsewhere.asked.length;
    await page.evaluate(async (address) => {
      const load = (element: HTMLScriptElement | HTMLImageElement) =>
        new Promise((resolve) => {
          element.onerror = resolve;
          element.onload = resolve;
          element.src = address;
          document.body.append(element);
        });
      await load(document.createElement("script"));
      await load(document.createElement("img"));
      const form = document.createElement("form");
      form.action = address;
      document.body.append(form);
      form.submit();
    }, url);
    await page.waitForTimeout(200);
    expect(elsewhere.asked.slice(before), path).toEqual([]);
  }
  expect(refused.length).toBeGreaterThan(2);
  await elsewhere.stop();
});
