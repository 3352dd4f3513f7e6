// The page on a static host: any path, offline after the first visit, updates, isolation.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { type Hosted, host, kept } from "../lib/folder.js";
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

async function works(page: Page): Promise<void> {
  const viewer = new Viewer(page);
  await viewer.show(GPT);
  await expect(viewer.peak).toHaveAttribute(
    "data-value",
    String(deviceOf(GPT).requested_bytes.peak),
  );
  await page.getByRole("tab", { name: "Code" }).click();
  await page.getByRole("tab", { name: "Call path" }).click();
  await expect(page.getByTestId("flame-canvas").first()).toBeVisible();
}

test("a new version is shown at the next visit, and the old one is deleted", async ({
  page,
  hosted,
}) => {
  await page.goto(hosted.address);
  await kept(page);
  const index = join(hosted.folder, "index.html");
  writeFileSync(
    index,
    readFileSync(index, "utf8").replace(/<title>.*<\/title>/, "<title>newer</title>"),
  );
  const script = join(hosted.folder, "sw.js");
  writeFileSync(script, readFileSync(script, "utf8").replace(/VERSION="\w+"/, 'VERSION="newer"'));
  // The HTTP cache may still hold the page. The service worker asks the server anyway.
  await page.goto("about:blank");
  await page.goto(hosted.address);
  await expect(page).toHaveTitle("newer");
  // The caches of the old version are deleted once none of its pages is open.
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

test("/isolated/ is cross-origin isolated on a server without the headers", async ({
  page,
  hosted,
}) => {
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

test("after the first visit the page can be installed and works offline, under any path", async ({
  page,
  hosted,
}) => {
  await test.step("installable", async () => {
    await page.goto(hosted.address);
    await kept(page);
    const session = await page.context().newCDPSession(page);
    const { errors } = await session.send("Page.getAppManifest");
    expect(errors).toEqual([]);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    // Playwright's private window is the only obstacle.
    expect(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito")).toEqual([]);
  });
  await test.step("offline", async () => {
    await hosted.stop();
    await page.reload();
    await works(page);
    // The record page works too, with its styles.
    await page.goto(`${hosted.address}record/`);
    await expect(page.getByRole("button", { name: "Copy" })).toHaveCount(3);
    await expect(page.locator("h1")).toHaveCSS("font-size", "30px");
  });
});

test("the page that opens addresses may fetch them, and no page may send anything else", async ({
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
  // Neither page loads scripts or images from another origin, or sends forms.
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
      const refusal = new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
          if (effectiveDirective === "form-action") resolve(null);
        });
      });
      form.submit();
      await refusal;
    }, url);
    expect(elsewhere.asked.slice(before), path).toEqual([]);
  }
  expect(refused.length).toBeGreaterThan(2);
  await elsewhere.stop();
});
