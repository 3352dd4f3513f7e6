// Opens the built page in a headless browser with software GL. CHROME names the browser.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { env } from "node:process";
import { fileURLToPath } from "node:url";

const web = new URL("../web/", import.meta.url);
const { chromium } = createRequire(new URL("e2e/package.json", web))("@playwright/test");

const gl = ["--use-gl=angle", "--use-angle=gl-egl", "--ignore-gpu-blocklist"];
const quiet = [
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Calls `use(open)`, where `open()` gives a page on which files can be opened. With `isolated` the
 * page may share memory, as with `vramscope serve`, so that several threads read large files. A
 * static host cannot send the headers for that. `open({ cold: true })` does not wait for the warm
 * up, and `prepare` is called with the page before its address is opened.
 */
export async function withPages(isolated, use) {
  const port = 4300 + Math.floor(Math.random() * 400);
  const script = fileURLToPath(new URL("e2e/server.mjs", web));
  const server = spawn("node", [script, String(port), isolated ? "isolated" : "plain"], {
    stdio: "ignore",
  });
  const executablePath = env.CHROME ?? "/usr/bin/chromium";
  const browser = await chromium.launch({
    executablePath,
    args: ["--headless=new", "--no-sandbox", ...gl, ...quiet],
  });
  const open = async ({ cold = false, prepare = async () => undefined } = {}) => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await prepare(page);
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForFunction(() => "vramscope" in window);
    await page.evaluate(() => window.vramscope.ready);
    // The worker warms up while the user chooses a file (warm_up.rs of vramscope-session).
    if (!cold) await page.waitForTimeout(1500);
    return page;
  };
  try {
    return await use(open);
  } finally {
    await browser.close();
    server.kill();
  }
}
