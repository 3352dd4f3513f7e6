// The message interface for pages that open or embed this page: consent, content, answers.

import { test as base, expect, type FrameLocator, type Page } from "@playwright/test";
import type { FromViewer } from "vramscope-viewer";
import { deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { site } from "../lib/examples.js";
import { type Folder, STRANGER, serveFolder } from "../lib/folder.js";

/** The example of docs/embedding.md. */
const HOST = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>A host</title>
<style>iframe { width: 1200px; height: 700px }</style><body><script>
function answers(target) {
  return new Promise((resolve) => {
    const ping = setInterval(() => target.postMessage("PING", "*"), 100);
    addEventListener("message", function heard({ source, data }) {
      if (source !== target || data !== "PONG") return;
      clearInterval(ping);
      removeEventListener("message", heard);
      resolve();
    });
  });
}
function show(target, message, transfer = []) {
  const answer = new Promise((resolve) => {
    addEventListener("message", function heard({ source, data }) {
      if (source !== target || data.vramscope === undefined) return;
      removeEventListener("message", heard);
      resolve(data.vramscope);
    });
  });
  target.postMessage(message, "*", transfer);
  return answer;
}
</script>`;

type Answer = Exclude<FromViewer, "PONG">["vramscope"];

declare global {
  interface Window {
    answers(target: Window): Promise<void>;
    show(target: Window, message: unknown, transfer?: Transferable[]): Promise<Answer>;
    shown: Window;
  }
}

interface Fixtures {
  /** The page on a static host. Isolation headers would cut the page off from its opener. */
  served: Folder;
  /** A page that opens or embeds the viewer. */
  host: Folder;
}

const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  served: async ({}, use) => {
    const folder = await serveFolder(site);
    await use(folder);
    await folder.stop();
  },
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads fixture names from the pattern
  host: async ({}, use) => {
    const folder = await serveFolder(null, { pages: { "/": HOST } });
    await use(folder);
    await folder.stop();
  },
});

const peakOf = (name: string) => String(deviceOf(testData(name)).requested_bytes.peak);

/** Embeds the page in a host and waits until it answers. */
async function embed(page: Page, address: string): Promise<FrameLocator> {
  await page.evaluate(async (url) => {
    const frame = document.createElement("iframe");
    frame.src = url;
    document.querySelector("iframe")?.remove();
    document.body.append(frame);
    if (!frame.contentWindow) throw new Error("there is no frame");
    window.shown = frame.contentWindow;
    await window.answers(window.shown);
  }, address);
  return page.frameLocator("iframe");
}

/** Opens the page in a window and waits until it answers. */
async function openWindow(page: Page, address: string): Promise<Page> {
  const opened = page.waitForEvent("popup");
  await page.evaluate(async (url) => {
    const popup = window.open(url);
    if (!popup) throw new Error("no window");
    window.shown = popup;
    await window.answers(popup);
  }, address);
  return opened;
}

/** Sends files of test_data/. Returns the answer and the bytes left in each buffer. */
const send = (page: Page, names: string[], more: object = {}) =>
  page.evaluate(
    async ([wanted, rest]) => {
      const files = await Promise.all(
        wanted.map(async (name) => ({
          name: name.split("/").at(-1),
          buffer: await (await fetch(`/data/${name}`)).arrayBuffer(),
        })),
      );
      const buffers = files.map(({ buffer }) => buffer);
      const answer = await window.show(window.shown, { vramscope: { files, ...rest } }, buffers);
      return { answer, left: buffers.map(({ byteLength }) => byteLength) };
    },
    [names, more] as const,
  );

test("a window shows the files of its opener, with title and state", async ({
  page,
  served,
  host,
}) => {
  await page.goto(host.at("/", "localhost"));
  const popup = await openWindow(page, served.at("/"));
  const { answer, left } = await send(
    page,
    ["scenarios/f01.pickle", "scenarios/f02.pickle", "damaged/empty.pickle"],
    {
      title: "A run from elsewhere",
      state: { view: "segments", path: "f02.pickle", theme: "dark" },
    },
  );
  expect(answer).toMatchObject({ kind: "loaded", failed: [{ path: "empty.pickle" }] });
  expect(answer.kind === "loaded" && answer.paths.toSorted()).toEqual(["f01.pickle", "f02.pickle"]);
  // Buffers are transferred, not copied.
  expect(left).toEqual([0, 0, 0]);
  await expect(popup.locator("h1")).toHaveText("A run from elsewhere");
  await expect(popup.getByTestId("view-segments")).toHaveAttribute("data-place", "main");
  await expect(popup.locator("[data-testid=rank-row][data-path='f02.pickle']")).toHaveAttribute(
    "aria-selected",
    "true",
  );
  await expect(popup.locator(".app")).toHaveAttribute("data-theme", "dark");
  // A single buffer is accepted too.
  const bare = await page.evaluate(async () => {
    const buffer = await (await fetch("/data/scenarios/f01.pickle")).arrayBuffer();
    return window.show(window.shown, buffer, [buffer]);
  });
  expect(bare).toEqual({ kind: "loaded", paths: ["snapshot"], failed: [] });
  await expect(popup.getByTestId("peak-value")).toHaveAttribute(
    "data-value",
    peakOf("scenarios/f01.pickle"),
  );
});

test("an embedded iframe has no header, keeps its mode, and shows the files of its host", async ({
  page,
  served,
  host,
}) => {
  await page.goto(host.at("/"));
  const frame = await embed(page, served.at("/#mode=embedded&theme=dark"));
  await expect(frame.getByText("No snapshot is open.")).toBeVisible();
  const { answer } = await send(page, ["scenarios/f01.pickle"]);
  expect(answer).toEqual({ kind: "loaded", paths: ["f01.pickle"], failed: [] });
  await expect(frame.getByTestId("peak-value")).toHaveAttribute(
    "data-value",
    peakOf("scenarios/f01.pickle"),
  );
  await expect(frame.getByRole("tab", { name: "Timeline" })).toBeVisible();
  await expect(frame.locator(".brand")).toHaveCount(0);
  await expect(frame.locator("input[type=file]")).toHaveCount(0);
  await expect(frame.locator(".app")).toHaveAttribute("data-theme", "dark");
  // The address keeps the mode next to the state.
  const address = () => page.frames()[1]?.evaluate(() => location.hash);
  await expect.poll(address).toMatch(/path=f01\.pickle.*&mode=embedded/);
});

test("an unknown origin needs consent, which lasts until the page is closed", async ({
  page,
  served,
  host,
}) => {
  await page.goto(host.at("/", STRANGER));
  const { origin } = new URL(page.url());
  const frame = await embed(page, served.at("/"));
  const question = frame.getByRole("dialog");

  const refused = send(page, ["scenarios/f01.pickle", "scenarios/f02.pickle"]);
  await expect(question).toContainText(`${origin} wants to show 2 files here`);
  await expect(question).toContainText("f01.pickle, f02.pickle");
  await question.getByRole("button", { name: "No" }).click();
  expect((await refused).answer.kind).toBe("error");
  // The page does not ask again, and shows nothing.
  expect((await send(page, ["scenarios/f01.pickle"])).answer.kind).toBe("error");
  expect((await send(page, [], { state: { theme: "dark" } })).answer.kind).toBe("error");
  await expect(question).toHaveCount(0);
  await expect(frame.getByTestId("rank-row")).toHaveCount(0);

  const again = await embed(page, served.at("/"));
  const shown = send(page, ["scenarios/f01.pickle"]);
  await again.getByRole("dialog").getByRole("button", { name: "Show" }).click();
  expect((await shown).answer.kind).toBe("loaded");
  expect((await send(page, ["scenarios/f02.pickle"])).answer.kind).toBe("loaded");
  await expect(again.getByTestId("peak-value")).toHaveAttribute(
    "data-value",
    peakOf("scenarios/f02.pickle"),
  );
});

test("the question about an origin shows the beginning of a file's name", async ({
  page,
  served,
  host,
}) => {
  await page.goto(host.at("/", STRANGER));
  const frame = await embed(page, served.at("/"));
  const answer = page.evaluate(() => {
    const file = new File([], `\u202e\n${"long".repeat(100_000)}`);
    return window.show(window.shown, { vramscope: { files: [file] } });
  });
  const question = frame.getByRole("dialog");
  await expect(question).toContainText("longlong");
  const text = (await question.textContent()) ?? "";
  expect(text).not.toMatch(/[\u202e\n]/);
  expect(text.length).toBeLessThan(500);
  await expect(question.getByRole("button", { name: "No" })).toBeInViewport();
  await question.getByRole("button", { name: "No" }).click();
  expect((await answer).kind).toBe("error");
});

test("an origin that is always trusted is asked about once", async ({ page, served, host }) => {
  // Use a window, because browsers may discard the storage of third-party frames.
  await page.goto(host.at("/", STRANGER));
  const popup = await openWindow(page, served.at("/"));
  const first = send(page, ["scenarios/f01.pickle"]);
  await popup.getByRole("dialog").getByRole("button", { name: "Always" }).click();
  expect((await first).answer.kind).toBe("loaded");
  await popup.close();
  const again = await openWindow(page, served.at("/"));
  expect((await send(page, ["scenarios/f02.pickle"])).answer.kind).toBe("loaded");
  await expect(again.getByTestId("peak-value")).toHaveAttribute(
    "data-value",
    peakOf("scenarios/f02.pickle"),
  );
});

test("invalid messages get an error or no answer, and do no harm", async ({
  page,
  served,
  host,
}) => {
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.goto(host.at("/"));
  const frame = await embed(page, served.at("/"));
  const answers = await page.evaluate(async () => {
    const cyclic: { files?: unknown[] } = {};
    cyclic.files = [cyclic, new Array(3)];
    const hostile: unknown[] = [
      { vramscope: cyclic },
      { vramscope: JSON.parse('{"__proto__": {"files": []}, "constructor": {"prototype": 1}}') },
      { vramscope: null },
      { vramscope: 5 },
      { vramscope: {} },
      { vramscope: { files: "f01.pickle" } },
      { vramscope: { files: [] } },
      { vramscope: { files: [null] } },
      { vramscope: { files: [{ name: "a" }] } },
      { vramscope: { files: [{ name: "a", buffer: [1, 2, 3] }] } },
      { vramscope: { files: [{ name: "a", buffer: new Uint8Array(4) }] } },
      { vramscope: { files: Array(20_000).fill({ name: "a", buffer: new ArrayBuffer(0) }) } },
      { vramscope: { files: { length: 1 } } },
    ];
    const kinds: string[] = [];
    for (const message of hostile) kinds.push((await window.show(window.shown, message)).kind);
    // These get no answer.
    for (const message of [null, 7, "pong", [], {}, new Map(), { type: "vramscope" }])
      window.shown.postMessage(message, "*");
    return kinds;
  });
  expect(answers).toEqual(Array(13).fill("error"));
  // A list with holes has no files.
  const holes = await page.evaluate(() =>
    window.show(window.shown, { vramscope: { files: new Array(3) } }),
  );
  expect(holes.kind === "error" && holes.message).toContain("A file must be a File");
  const { answer } = await send(page, ["scenarios/f01.pickle"], {
    title: `<img src=x onerror=alert(1)>\u202e\n${"long ".repeat(200)}`,
    state: { view: "nonsense", theme: ["dark"], x0: {}, sel: "<script>", at: -7, path: 5 },
  });
  expect(answer).toEqual({ kind: "loaded", paths: ["f01.pickle"], failed: [] });
  const title = (await frame.locator("h1").textContent()) ?? "";
  expect(title.startsWith("<img src=x onerror=alert(1)>long long")).toBe(true);
  expect(title.length).toBeLessThanOrEqual(300);
  await expect(frame.locator("h1 img")).toHaveCount(0);
  await expect(frame.getByTestId("view-timeline")).toHaveAttribute("data-place", "main");
  expect(wrong).toEqual([]);
});

test("only opener and parent are answered", async ({ page, served, host }) => {
  await page.goto(host.at("/"));
  await embed(page, served.at("/"));
  // A sibling frame is neither opener nor parent.
  const heard = await page.evaluate(async () => {
    const sibling = document.createElement("iframe");
    sibling.src = "/";
    const there = new Promise((resolve) => sibling.addEventListener("load", resolve));
    document.body.append(sibling);
    await there;
    const other = sibling.contentWindow as (Window & typeof globalThis) | null;
    if (!other) throw new Error("there is no frame");
    const heardThere: unknown[] = [];
    other.addEventListener("message", ({ data }) => heardThere.push(data));
    other.eval('parent.frames[0].postMessage("PING", "*")');
    other.eval('parent.frames[0].postMessage({ vramscope: {} }, "*")');
    // Messages arrive in order, so these answers would come after those of the sibling.
    await window.answers(window.shown);
    await window.answers(window.shown);
    return heardThere;
  });
  expect(heard).toEqual([]);
});

test("a page without opener and parent does not load the code for messages", async ({
  page,
  served,
}) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(served.at("/"));
  await page.waitForFunction(() => "vramscope" in window);
  await page.evaluate(() => window.vramscope.ready);
  expect(asked.filter((path) => path.includes("door"))).toEqual([]);
  expect(asked.length).toBeGreaterThan(3);
});
