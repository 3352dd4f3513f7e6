// `vramscope.show` in JupyterLab: the picture, and what comes back to Python.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, type Locator, type Page, test } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { blocksOf, deviceOf, findingsOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";

const REAL = testData("recorded/gpt_leak.pickle.gz");
const { JUPYTER_PYTHON } = process.env;

const CELLS = [
  `import json, vramscope\nw = vramscope.show(${JSON.stringify(REAL)}, view="timeline")\nw`,
  "print(json.dumps([w.selected, w.finding, w.cursor, w.errors]))",
];

let folder = "";
let address = "";
let server: ChildProcess;

test.beforeAll(async () => {
  if (JUPYTER_PYTHON === undefined) throw new Error("set JUPYTER_PYTHON: see jupyter.config.ts");
  folder = mkdtempSync(join(tmpdir(), "jupyter-"));
  const cell = (source: string) => ({
    cell_type: "code",
    execution_count: null,
    id: `cell${CELLS.indexOf(source)}`,
    metadata: {},
    outputs: [],
    source,
  });
  const kernelspec = { name: "python3", display_name: "Python 3", language: "python" };
  const notebook = {
    cells: CELLS.map(cell),
    metadata: { kernelspec },
    nbformat: 4,
    nbformat_minor: 5,
  };
  writeFileSync(join(folder, "memory.ipynb"), JSON.stringify(notebook));
  const options = {
    "ServerApp.ip": "127.0.0.1",
    "ServerApp.port": "0",
    "ServerApp.root_dir": folder,
    "ServerApp.allow_root": "True",
    "ServerApp.open_browser": "False",
    "IdentityProvider.token": "",
  };
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  server = spawn(JUPYTER_PYTHON, ["-m", "jupyterlab", ...flags], {
    env: { ...process.env, HOME: folder, JUPYTER_CONFIG_DIR: folder, PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (!server.stderr) throw new Error("Jupyter has no standard error");
  for await (const line of createInterface({ input: server.stderr })) {
    const [found] = /http:\/\/127\.0\.0\.1:\d+\//.exec(line) ?? [];
    if (found === undefined) continue;
    address = found;
    break;
  }
  // Jupyter logs on, and must not wait for a reader.
  server.stderr.resume();
});

test.afterAll(async () => {
  const ended = once(server, "exit");
  server.kill("SIGINT");
  server.kill("SIGINT");
  await ended;
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the notebook and runs its first cell. */
async function open(page: Page): Promise<Locator> {
  await page.goto(`${address}lab/tree/memory.ipynb`);
  const first = page.locator(".jp-CodeCell").first();
  await first.locator(".cm-content").click();
  await page.keyboard.press("Shift+Enter");
  const viewer = first.locator("vramscope-viewer");
  const peak = String(deviceOf(REAL).requested_bytes.peak);
  await expect(viewer.getByTestId("peak-value")).toHaveAttribute("data-value", peak);
  return viewer;
}

/** What the second cell prints: the widget's traits. */
async function traits(page: Page): Promise<unknown[]> {
  const second = page.locator(".jp-CodeCell").nth(1);
  await second.locator(".cm-content").click();
  const prompt = second.locator(".jp-InputPrompt");
  const before = await prompt.textContent();
  await page.keyboard.press("Control+Enter");
  await expect(prompt).toHaveText(/\[\d+\]/);
  await expect(prompt).not.toHaveText(before ?? "");
  return JSON.parse(await second.locator(".jp-OutputArea-output").innerText());
}

const strips = (viewer: Locator) =>
  viewer.evaluate((element) => (element as VramscopeViewer).stats().strips);

test("a click in the widget comes back to Python as the program's block", async ({ page }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const viewer = await open(page);
  await expect.poll(() => strips(viewer)).toBeGreaterThan(0);
  expect(await traits(page)).toEqual([null, null, null, []]);

  const canvas = viewer.getByTestId("timeline-canvas");
  await canvas.scrollIntoViewIfNeeded();
  const [hit, position] = await viewer.evaluate(async (element) => {
    const box = element.shadowRoot
      ?.querySelector("[data-testid=timeline-canvas]")
      ?.getBoundingClientRect();
    if (!box) throw new Error("there is no canvas");
    for (let y = box.height - 60; y > 0; y -= 10) {
      const at = { x: Math.round(box.width / 2), y: Math.round(y) };
      const hit = await (element as VramscopeViewer).pick("timeline", at.x, at.y);
      if (hit) return [hit, at] as const;
    }
    throw new Error("no block is drawn");
  });
  await canvas.click({ position });
  await expect(viewer.getByTestId("details")).toContainText("Call stack");
  const block = blocksOf(REAL).find((each) => referenceOf(each) === hit.reference);
  expect(block).toBeDefined();
  await expect
    .poll(async () => (await traits(page))[0])
    .toEqual({ path: "gpt_leak.pickle.gz", reference: hit.reference, device: 0, ...block });

  const [finding] = findingsOf(REAL);
  if (!finding) throw new Error("the recording has no finding");
  await viewer.evaluate((element) => element.setAttribute("view", "findings"));
  await viewer.locator(`[data-testid=finding][data-id="${finding.id}"]`).click();
  await expect
    .poll(async () => ((await traits(page))[1] as { id?: string } | null)?.id)
    .toBe(finding.id);

  const elsewhere = asked.filter((url) => !url.startsWith(address) && !/^(blob|data):/.test(url));
  expect(elsewhere).toEqual([]);
  // The files of the viewer and the snapshot came by messages.
  expect(asked.filter((url) => /vramscope|\.wasm|\.pickle/.test(url))).toEqual([]);
});
