// Watches a page by its pixels: when its picture is filled, when it has its colors, when it no
// longer changes, and when the verdict can be read.
//
// The frames come from the browser's screencast. A screenshot on demand takes as much processor
// time, and its answer says only that the frame is from some moment of the 100 to 400 ms that it
// took with a busy page; the screencast stamps each frame when its pixels are read. PNG, JPEG and
// the trace's small screenshots slow the page equally: reading the pixels is what costs. PNG keeps
// the colors exact. Frames are kept as they come, and are compared after the last one.

import { createRequire } from "node:module";

const { PNG } = createRequire(new URL("../web/e2e/package.json", import.meta.url))("pngjs");

/** The text of the verdict, in all places. */
const VERDICT = "[data-testid=verdict] :is(b, [data-headline])";

/** The picture of a place: its plot. A place without a plot is a picture as a whole. */
const PICTURES = [".plot canvas", "[data-testid^=place-]"];

/** Surfaces without anything on them, and colors of categories: custom properties of the page. */
const GROUNDS = ["bg", "panel", "raise", "plot"];
const CATEGORIES = [
  "parameter",
  "gradient",
  "optimizer_state",
  "buffer",
  "input",
  "activation",
  "temporary",
  "workspace",
  "communication",
  "cache",
  "unknown",
];

/** Maximum difference of equal colors, summed over three channels of 0 to 255. */
const TOLERANCE = 24;

/**
 * A mark is reached when its share holds from there on. Each is a share of the last picture:
 * `filled` of its drawn pixels, of which each must be drawn; `colored` of the pixels of each
 * category's color, which may be anywhere, and whose thin bands are blurred while a canvas is
 * stretched; `still` of all pixels, which must have their last color; `verdict` of the pixels of
 * the verdict's letters, likewise.
 */
const SHARES = { filled: 0.95, colored: 0.7, still: 0.99, verdict: 0.95 };

/**
 * A category with a smaller share of the last picture is not waited for: edges of gray letters have
 * the colors of buffers and of unknown memory.
 */
const SEEN = 0.005;

/** Pixels by which the verdict may move to the side. */
const ASIDE = 48;

/** The last picture is taken when nothing has changed for this time, in milliseconds. */
const QUIET_MS = 500;

/** Nothing is waited for longer, in milliseconds. */
const LONGEST_MS = 600_000;

/** The frames of a page, as they come: `{ at, data }`, with milliseconds since 1970 and a PNG. */
export async function watch(page) {
  const session = await page.context().newCDPSession(page);
  const frames = [];
  const watched = { frames, changed: Date.now() };
  session.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
    // A closing page has no session any more.
    session.send("Page.screencastFrameAck", { sessionId }).catch(() => undefined);
    if (data !== frames.at(-1)?.data) watched.changed = Date.now();
    frames.push({ at: metadata.timestamp * 1000, data });
  });
  await session.send("Page.startScreencast", { format: "png", everyNthFrame: 1 });
  return watched;
}

/**
 * Opens a file. Resolves to the time of the input's change event, in milliseconds since 1970, and
 * to a promise of the milliseconds from there until the verdict is in the document.
 */
export async function drop(page, file) {
  const input = page.getByTestId("open-files");
  await input.evaluate((element, verdict) => {
    // A change event does not leave the shadow root of the input.
    const root = element.getRootNode();
    const begin = () => {
      window.droppedAt = Date.now();
      window.said = new Promise((resolve) => {
        const observer = new MutationObserver(() => {
          if (root.querySelector(verdict) === null) return;
          observer.disconnect();
          resolve(Date.now() - window.droppedAt);
        });
        observer.observe(root, { subtree: true, childList: true, attributes: true });
      });
    };
    root.addEventListener("change", begin, { capture: true, once: true });
  }, VERDICT);
  await input.setInputFiles(file);
  return { droppedAt: await page.evaluate(() => window.droppedAt), said: () => said(page) };
}

const said = (page) => page.evaluate(() => window.said);

/** Waits until nothing on a watched page has changed for `QUIET_MS`, and nothing is awaited. */
export async function settled(page, watched) {
  const start = Date.now();
  for (;;) {
    if (Date.now() - start > LONGEST_MS) throw new Error("the page does not come to rest");
    const rest = QUIET_MS - (Date.now() - watched.changed);
    await page.waitForTimeout(Math.max(rest, 50));
    if (Date.now() - watched.changed < QUIET_MS) continue;
    const verdict = await page.locator(VERDICT).count();
    const busy = await page.locator(".busy, [aria-busy=true]").filter({ visible: true }).count();
    if (verdict > 0 && busy === 0) return;
  }
}

/** The marks of a settled page in milliseconds from the drop, and the place that it shows. */
export async function marks(page, { frames }, droppedAt) {
  const [picture] = (await Promise.all(PICTURES.map((of) => boxes(page, of)))).flat();
  const [verdict] = await boxes(page, VERDICT);
  if (!picture || !verdict) throw new Error("the page has no picture or no verdict");
  const place = await page.getByTestId(/^place-/).getAttribute("data-testid");
  const kindOf = kinds(await colorsOf(page));
  const after = frames.filter(({ at }) => at >= droppedAt).sort((a, b) => a.at - b.at);
  if (after.length === 0) throw new Error("the browser gave no frame after the drop");
  const last = decode(await page.screenshot());
  const letters = lettersOf(last, verdict);
  const steps = after.map((frame) => {
    const png = decode(Buffer.from(frame.data, "base64"));
    const shares = sharesOfPicture(png, last, picture, kindOf);
    return { ms: frame.at - droppedAt, ...shares, verdict: letters(png) };
  });
  const reached = Object.entries(SHARES).map(([mark, share]) => {
    const first = steps[steps.findLastIndex((step) => step[mark] < share) + 1];
    // The browser may drop a frame while two others are on their way.
    if (!first) throw new Error(`the screencast has no frame that is ${mark} as the page now is`);
    return [mark, first.ms];
  });
  return { place: place.replace("place-", ""), ...Object.fromEntries(reached) };
}

function decode(file) {
  const { width, data: bytes } = PNG.sync.read(file);
  return { width, bytes };
}

/** The visible boxes of a selector, in whole pixels of the window. */
async function boxes(page, selector) {
  const found = await page.locator(selector).filter({ visible: true }).all();
  const window = page.viewportSize();
  const all = await Promise.all(found.map((one) => one.boundingBox()));
  return all
    .map(({ x, y, width, height }) => ({
      left: Math.max(0, Math.ceil(x)),
      top: Math.max(0, Math.ceil(y)),
      right: Math.min(window.width, Math.floor(x + width)),
      bottom: Math.min(window.height, Math.floor(y + height)),
    }))
    .filter(({ left, top, right, bottom }) => left < right && top < bottom);
}

/** The colors of the grounds, then of the categories, in the page's theme. */
async function colorsOf(page) {
  const names = [...GROUNDS, ...CATEGORIES];
  const values = await page.locator(".app").evaluate((app, all) => {
    const style = getComputedStyle(app);
    return all.map((name) => style.getPropertyValue(`--${name}`).trim());
  }, names);
  return values.map((value, index) => {
    if (!/^#[0-9a-f]{6}$/.test(value)) throw new Error(`--${names[index]} is ${value}, no color`);
    return Number.parseInt(value.slice(1), 16);
  });
}

/** Maps a color to the index of the nearly equal one in `colors`, or to -1. */
function kinds(colors) {
  const known = new Map();
  return (color) => {
    let kind = known.get(color);
    if (kind === undefined) {
      kind = colors.findIndex((other) => isNear(color, other));
      known.set(color, kind);
    }
    return kind;
  };
}

function isNear(a, b) {
  const by = (shift) => Math.abs(((a >> shift) & 255) - ((b >> shift) & 255));
  return a === b || by(16) + by(8) + by(0) <= TOLERANCE;
}

/** The color of a pixel as a number; -1 outside of the picture. */
function colorAt({ width, bytes }, x, y) {
  return x >= 0 && x < width ? bytes.readUIntBE(4 * (y * width + x), 3) : -1;
}

/** Calls `use` with the color of each pixel of a box, in one picture and in the last. */
function each(png, last, { left, top, right, bottom }, use) {
  for (let y = top; y < bottom; y += 1)
    for (let x = left; x < right; x += 1) use(colorAt(png, x, y), colorAt(last, x, y));
}

function sharesOfPicture(png, last, box, kindOf) {
  const isGround = (kind) => kind >= 0 && kind < GROUNDS.length;
  const before = new Uint32Array(GROUNDS.length + CATEGORIES.length);
  const after = new Uint32Array(before.length);
  let [all, equal, drawn, wanted] = [0, 0, 0, 0];
  each(png, last, box, (now, then) => {
    const [kind, end] = [kindOf(now), kindOf(then)];
    all += 1;
    if (isNear(now, then)) equal += 1;
    if (kind >= 0) before[kind] += 1;
    if (end >= 0) after[end] += 1;
    if (isGround(end)) return;
    wanted += 1;
    if (!isGround(kind)) drawn += 1;
  });
  const shares = [...after.keys()]
    .filter((kind) => !isGround(kind) && after[kind] >= SEEN * all)
    .map((kind) => before[kind] / after[kind]);
  if (shares.length === 0) throw new Error("the last picture has no color of a category");
  return { filled: drawn / wanted, colored: Math.min(...shares), still: equal / all };
}

/**
 * The share of the verdict's letters that a picture has. They may stand up to `ASIDE` pixels to the
 * left or right, where they are read as well: what comes beside them moves them.
 */
function lettersOf(last, { left, top, right, bottom }) {
  const counts = new Map();
  each(last, last, { left, top, right, bottom }, (color) =>
    counts.set(color, (counts.get(color) ?? 0) + 1),
  );
  const [ground] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
  const letters = [];
  for (let y = top; y < bottom; y += 1)
    for (let x = left; x < right; x += 1)
      if (!isNear(colorAt(last, x, y), ground)) letters.push([x, y, colorAt(last, x, y)]);
  const shifts = Array.from({ length: 2 * ASIDE + 1 }, (_, index) => index - ASIDE);
  return (png) => {
    const equal = (by) =>
      letters.filter(([x, y, color]) => isNear(colorAt(png, x + by, y), color)).length;
    return Math.max(...shifts.map(equal)) / letters.length;
  };
}
