// The front end of `vramscope.show()`: gets viewer and file by messages, and tells what is
// selected. The test is Python here. python/tests/test_notebook.py tests the other side, and
// web/e2e/jupyter both together.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, type Page } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { blocksOf, deviceOf, findingsOf, referenceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { test } from "../lib/embedded.js";
import { drawn, site, wasmOf } from "../lib/examples.js";
import { workers } from "../lib/faults.js";
import { serveFolder } from "../lib/folder.js";

const REAL = "recorded/gpt_leak.pickle.gz";
const NAME = "gpt_leak.pickle.gz";
const SIZE = readFileSync(testData(REAL)).length;
/** Bytes of a piece. Python sends larger ones. */
const PIECE = 50_000;

interface Asked {
  kind: string;
  part: string | number;
  at: number;
}

interface Answer {
  kind: string;
  bytes?: number;
  gzip?: boolean;
  /** The piece as base64. */
  data?: string;
  message?: string;
}

declare global {
  interface Window {
    python(asked: Asked): Promise<Answer | null>;
    model: {
      traits: Record<string, unknown>;
      tell(content: object): void;
      listeners: Set<unknown>;
    };
    end(): void;
  }
}

const OPTIONS = {
  files: [{ name: NAME, bytes: SIZE }],
  height: 700,
  theme: "notebook",
  state: { view: "timeline" },
};

/** A notebook with one widget. */
const NOTEBOOK = `<!doctype html><html lang="en"><title>A notebook</title>
<link rel="icon" href="data:,"><style>body { margin: 0 }</style>
<body data-jp-theme-light="false"><div id="cell"></div>
<script type="module">
import widget from "/notebook.js";
const listeners = new Set();
const traits = { errors: [], options: ${JSON.stringify(OPTIONS)} };
window.model = {
  traits,
  listeners,
  get: (name) => traits[name],
  set: (name, value) => { traits[name] = value; },
  save_changes: () => undefined,
  on: (event, listen) => listeners.add(listen),
  off: (event, listen) => listeners.delete(listen),
  tell: (content, buffers = []) => {
    for (const listen of [...listeners]) listen(content, buffers);
  },
  send: async (content) => {
    const answer = await window.python(content);
    if (answer === null) return;
    const bytes = Uint8Array.from(atob(answer.data ?? ""), (c) => c.charCodeAt(0));
    // Jupyter hands over views of a larger buffer.
    const around = new Uint8Array(bytes.length + 8);
    around.set(bytes, 8);
    model.tell({ ...answer, id: content.id }, [new DataView(around.buffer, 8)]);
  },
};
window.end = widget.render({ model, el: document.getElementById("cell") });
</script>`;

/** Opens the notebook with this Python. */
async function open(page: Page, python: (asked: Asked) => Answer | null) {
  await page.exposeFunction("python", python);
  const folder = await serveFolder(site, { pages: { "/": NOTEBOOK } });
  await page.goto(folder.at("/"));
  return folder;
}

/** Answers as Python does, in small pieces. */
function answer({ part, at }: Asked): Answer {
  let whole: Buffer;
  if (part === "script") whole = readFileSync(join(site, "inline.js"));
  else if (part === "view" || part === "worker") whole = wasmOf(part);
  else whole = readFileSync(testData(REAL));
  const piece = whole.subarray(at, at + (part === 0 ? PIECE : 1 << 20));
  // The file is gzipped as a whole. Pieces of the viewer are gzipped.
  const gzip = part !== 0;
  const data = (gzip ? gzipSync(new Uint8Array(piece)) : piece).toString("base64");
  return { kind: "piece", bytes: whole.length, gzip, data };
}

const trait = (page: Page, name: string) =>
  page.evaluate((name) => window.model.traits[name], name);

test("viewer and file come in pieces, and selections go back", async ({ page, wrong }) => {
  const asked: Asked[] = [];
  const folder = await open(page, (each) => {
    asked.push(each);
    return answer(each);
  });
  await drawn(page);
  const peak = String(deviceOf(REAL).requested_bytes.peak);
  await expect(page.getByTestId("peak-value")).toHaveAttribute("data-value", peak);
  const pieces = asked.filter(({ part }) => part === 0).map(({ at }) => at);
  expect(pieces).toEqual(Array.from({ length: Math.ceil(SIZE / PIECE) }, (_, i) => i * PIECE));
  expect(pieces.length).toBeGreaterThan(2);
  expect([...new Set(folder.asked)]).toEqual(["/", "/notebook.js"]);

  const viewer = page.locator("vramscope-viewer");
  await expect(viewer.locator(".app")).toHaveAttribute("data-theme", "dark");
  await page.evaluate(() => document.body.setAttribute("data-jp-theme-light", "true"));
  await expect(viewer.locator(".app")).toHaveAttribute("data-theme", "light");

  // Blocks of the window, and from before it.
  const blocks = blocksOf(REAL);
  const chosen = [blocks[0], blocks.find(({ preexisting }) => preexisting), blocks.at(-1)];
  for (const block of chosen) {
    if (block === undefined) continue;
    const reference = referenceOf(block);
    await page.evaluate((reference) => window.model.tell({ kind: "select", reference }), reference);
    await expect
      .poll(() => trait(page, "selected"))
      .toEqual({ path: NAME, reference, device: 0, ...block });
  }
  await page.evaluate(() => window.model.tell({ kind: "select", reference: null }));
  await expect.poll(() => trait(page, "selected")).toBe(null);

  const [finding] = findingsOf(REAL);
  await viewer.evaluate((element) => {
    (element as VramscopeViewer).setState({ at: 500 });
    element.setAttribute("view", "summary");
  });
  await expect.poll(() => trait(page, "cursor")).toBe(500);
  const verdict = page.locator(`[data-testid=verdict][data-finding="${finding?.id}"]`);
  await expect(verdict).toBeVisible();
  await page.getByRole("button", { name: "Open the timeline" }).click();
  await expect.poll(() => trait(page, "finding")).toMatchObject({ path: NAME, id: finding?.id });
  // A second click chooses all blocks again.
  await page
    .getByRole("button", { name: /^Clear/ })
    .first()
    .click();
  await expect.poll(() => trait(page, "finding")).toBe(null);
  expect(await trait(page, "errors")).toEqual([]);
  expect(wrong).toEqual([]);
  await folder.stop();
});

test("a widget that is removed ends its workers and listens no more", async ({ page }) => {
  const its = await workers(page);
  const folder = await open(page, answer);
  await drawn(page);
  await page.evaluate(() => window.end());
  await expect.poll(async () => (await its()).alive).toBe(0);
  expect(await page.evaluate(() => window.model.listeners.size)).toBe(0);
  await folder.stop();
});

test("what Python cannot send is said in the cell", async ({ page }) => {
  const folder = await open(page, ({ part, at }) =>
    part === 0 && at > 0
      ? { kind: "failed", message: "x.pickle has changed" }
      : answer({ kind: "read", part, at }),
  );
  await expect(page.getByRole("status")).toHaveText("x.pickle has changed");
  await expect(page.locator("vramscope-viewer")).toHaveCount(0);
  await folder.stop();
});

test("a silent Python is named", async ({ page }) => {
  const folder = await open(page, () => null);
  await expect(page.getByRole("status")).toContainText("Python does not answer");
  await folder.stop();
});

test("a file that is no snapshot is an error in the widget and in Python", async ({ page }) => {
  const folder = await open(page, (asked) =>
    asked.part === 0
      ? { kind: "piece", bytes: 5, gzip: false, data: Buffer.from("hello").toString("base64") }
      : answer(asked),
  );
  await expect
    .poll(() => trait(page, "errors"))
    .toMatchObject([{ path: NAME, message: expect.stringMatching(/./) }]);
  await folder.stop();
});
