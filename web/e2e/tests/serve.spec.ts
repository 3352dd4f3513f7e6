// `vramscope serve`: the page and the files of a folder.

import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect } from "@playwright/test";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { type Served, serve } from "../lib/served.js";
import { Viewer } from "../lib/viewer.js";

const GPT = testData("recorded/t26/gpt_small.pickle.gz");
const LEAK = testData("recorded/gpt_leak.pickle.gz");

interface Fixtures {
  folder: string;
  put: (from: string, name: string) => string;
  served: Served;
}

const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  folder: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), "served-"));
    await use(folder);
    rmSync(folder, { recursive: true });
  },
  put: async ({ folder }, use) => {
    await use((from, name) => {
      const path = join(folder, name);
      copyFileSync(from, path);
      // An old modification time, so that the server takes the file for complete.
      const then = Date.now() / 1000 - 60;
      utimesSync(path, then, then);
      return path;
    });
  },
  served: async ({ folder, put }, use) => {
    put(GPT, "rank0.pickle.gz");
    const served = await serve({}, folder);
    await use(served);
    await served.stop();
  },
});

/** The text of a file, or nothing if it has vanished. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Requests an address with these headers. */
function answer(
  address: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const asked = ask(address, { headers }, (response) => {
      const parts: Uint8Array[] = [];
      response.on("data", (part: Uint8Array) => parts.push(part));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts) }),
      );
    });
    asked.on("error", reject);
    asked.end();
  });
}

test("the folder opens by itself, later files are offered, and a stop is reported", async ({
  page,
  served,
  folder,
  put,
}) => {
  const wrong: string[] = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  expect(served.line).toContain("1 file");
  await page.goto(served.address);
  const viewer = new Viewer(page);
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  await test.step("numbers and isolation", async () => {
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    await expect(viewer.peak).toHaveAttribute(
      "data-value",
      String(deviceOf(GPT).requested_bytes.peak),
    );
  });
  await test.step("a file that is written later", async () => {
    const offer = page.getByTestId("offer");
    await expect(offer).toHaveCount(0);
    put(LEAK, "rank1.pickle.gz");
    await expect(offer).toContainText("rank1.pickle.gz");
    await offer.getByRole("button", { name: "Reload the run" }).click();
    await expect(offer).toHaveCount(0);
    await expect(viewer.rows).toHaveCount(2);
    await expect(viewer.row(join(folder, "rank1.pickle.gz"))).toHaveAttribute(
      "data-state",
      "ready",
    );
    // An offer can be dismissed.
    put(LEAK, "rank2.pickle.gz");
    await expect(offer).toContainText("rank2.pickle.gz");
    await offer.getByRole("button", { name: "Dismiss" }).click();
    await expect(offer).toHaveCount(0);
    await expect(viewer.rows).toHaveCount(2);
  });
  await test.step("the program stops", async () => {
    expect(wrong).toEqual([]);
    await served.stop();
    await expect(page.getByRole("alert")).toContainText("has stopped");
    await expect(viewer.peak).toHaveAttribute(
      "data-value",
      String(deviceOf(GPT).requested_bytes.peak),
    );
  });
});

test("the server checks token and host, serves ranges, and stays in its folder", async ({
  served,
}) => {
  const { origin } = new URL(served.address);
  expect((await answer(`${origin}/`)).status).toBe(404);
  expect((await answer(`${origin}/${"0".repeat(32)}/`)).status).toBe(404);
  expect((await answer(served.address, { Host: "evil.example" })).status).toBe(403);
  expect(
    (await answer(served.address, { Host: `localhost:${new URL(served.address).port}` })).status,
  ).toBe(200);
  const index = JSON.parse((await answer(`${served.address}files/index.json`)).body.toString()) as {
    files: { url: string; bytes: number }[];
  };
  const [file] = index.files;
  const url = `${served.address}files/${file?.url}`;
  const whole = await answer(url);
  expect(whole.body.byteLength).toBe(file?.bytes);
  const part = await answer(url, { Range: "bytes=100-199" });
  expect(part.status).toBe(206);
  expect(part.body).toEqual(whole.body.subarray(100, 200));
  for (const path of ["files/1", "files/..%2f..%2fetc%2fpasswd", "..%2f..%2fetc%2fpasswd"]) {
    expect((await answer(`${served.address}${path}`)).status, path).toBeGreaterThanOrEqual(400);
  }
});

test("no process has the token in its arguments", async ({ folder, put, page }) => {
  put(GPT, "rank0.pickle.gz");
  const tools = mkdtempSync(join(tmpdir(), "browser-"));
  const seen = join(tools, "arguments");
  // The program starts the first browser that it finds. This one notes its arguments.
  for (const name of ["xdg-open", "wslview"]) {
    writeFileSync(join(tools, name), `#!/bin/sh\nprintf '%s\\n' "$@" > ${seen}\n`, { mode: 0o755 });
  }
  const served = await serve({ browsers: tools }, folder);
  await expect.poll(() => existsSync(seen) && readFileSync(seen, "utf8").trim()).toBeTruthy();
  const [file] = readFileSync(seen, "utf8").trim().split("\n") as [string];
  const token = /[0-9a-f]{32}/.exec(new URL(served.address).pathname)?.[0] ?? "";
  expect(token).toHaveLength(32);
  expect(file).not.toContain(token);
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    expect(textOf(`/proc/${pid}/cmdline`)).not.toContain(token);
  }
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await page.goto(`file://${file}`);
  await page.waitForURL(`${served.address}**`);
  await served.stop();
  expect(existsSync(file)).toBe(false);
  rmSync(tools, { recursive: true });
});

test("without a path the server offers the empty page", async ({ page }) => {
  const served = await serve({});
  expect(served.line).toContain("the page only");
  await page.goto(served.address);
  await expect(page.getByTestId("open-sample")).toBeVisible();
  // Gallery and documents are on the site alone.
  await expect(page.getByRole("link", { name: "how to record" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Gallery" })).toHaveCount(0);
  for (const folder of ["gallery/", "docs/"])
    expect((await page.request.get(served.address + folder)).status()).toBe(404);
  // The record page is served under its folder.
  await page.goto(`${served.address}record/`);
  await expect(page.getByRole("button", { name: "Copy" })).toHaveCount(3);
  await expect(page.getByRole("link", { name: "Documents" })).toHaveCount(0);
  await served.stop();
});
