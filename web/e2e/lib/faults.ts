// Faults on demand: workers that stop, little memory, no WebGL.

import type { Page } from "@playwright/test";

/** The script of the page's workers. */
export const WORKER = /\/assets\/worker-[^/]*\.js$/;

/** How a worker may end. */
export type End = "throw" | "panic" | "outgrow" | "overflow" | "silence";

/**
 * Runs before the script of a worker, and ends the worker on request: "throw" at once outside of
 * any query, "silence" without a word, the others with a WebAssembly trap in the next step.
 */
const PRELUDE = `
const fault = { path: "", armed: "" };
const post = globalThis.postMessage;
globalThis.postMessage = (...message) => {
  if (fault.armed !== "silence") post(...message);
};
addEventListener("message", ({ data }) => {
  if (data.kind === "load") fault.path = data.path;
  if (data.kind === "run") fault.path = "coordinator";
});
new BroadcastChannel("faults").onmessage = ({ data: { path, end } }) => {
  if (path !== fault.path) return;
  if (end === "throw") throw new Error("boom");
  fault.armed = end;
};
// A module whose function "f" traps.
const STOPS = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1,
  102, 0, 0, 10, 5, 1, 3, 0, 0, 11);
const PANICS = {
  panic: "crates/some/where.rs:7:5:\\nindex out of bounds",
  overflow: "library/alloc/src/raw_vec/mod.rs:28:5:\\ncapacity overflow",
};
const trap = () => new WebAssembly.Instance(new WebAssembly.Module(STOPS)).exports.f();
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (module, imports) => {
  const instance = await instantiate(module, imports);
  const wrapped = { ...instance.exports };
  for (const name of ["rankworker_step", "runworker_handle"]) {
    wrapped[name] = (...rest) => {
      const end = fault.armed === "silence" ? "" : fault.armed;
      if (end) fault.armed = "";
      const panic = PANICS[end];
      if (panic) console.error("panicked at " + panic + "\\n\\nStack:\\n\\nat many frames");
      if (end === "outgrow") instance.exports.memory.grow(16_400);
      if (end) trap();
      return instance.exports[name](...rest);
    };
  }
  return Object.create(WebAssembly.Instance.prototype, { exports: { value: wrapped } });
};
`;

/** Reloads the page with `prelude` in front of its worker script, see `end`. */
export async function fragile(page: Page, prelude = PRELUDE): Promise<void> {
  // Leave the page first, so that its pending requests are not routed.
  await page.goto("about:blank");
  // The script is fetched once: a worker that starts when the test ends has no time to fetch it.
  let script: { headers: Record<string, string>; body: string } | null = null;
  await page.route(WORKER, async (route) => {
    if (script === null) {
      const response = await route.fetch();
      const text = await response.text();
      script = { headers: response.headers(), body: `${prelude}\n${text}` };
    }
    await route.fulfill(script);
  });
  await page.goto("/");
  await page.waitForFunction(() => "vramscope" in window);
}

/** Ends the worker of a file, or of the path "coordinator". */
export const end = (page: Page, path: string, how: End) =>
  page.evaluate(
    ([to, end]) => {
      const channel = new BroadcastChannel("faults");
      channel.postMessage({ path: to, end });
      channel.close();
    },
    [path, how] as const,
  );

export async function reload(page: Page): Promise<void> {
  await page.reload();
  await page.waitForFunction(() => "vramscope" in window);
}

/** Reads an unsigned LEB128 number of a module; `next` is the offset after it. */
function number(bytes: Uint8Array, at: number): { value: number; next: number } {
  let [value, shift, next] = [0, 0, at];
  for (;;) {
    const byte = bytes[next] ?? 0;
    value += (byte & 127) * 2 ** shift;
    next += 1;
    shift += 7;
    if (byte < 128) return { value, next };
  }
}

function leb128(value: number): number[] {
  const out: number[] = [];
  let left = value;
  do {
    out.push((left & 127) | (left > 127 ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return out;
}

/** A copy of the module whose memory can grow by at most `pages` pages of 64 KiB. */
export function bounded(module: Buffer, pages: number): Buffer {
  const bytes = new Uint8Array(module);
  for (let at = 8; at < bytes.length; ) {
    const { value: size, next: body } = number(bytes, at + 1);
    if (bytes[at] === 5) {
      const { value: least } = number(bytes, body + 2);
      const section = [1, 1, ...leb128(least), ...leb128(least + pages)];
      return Buffer.concat([
        bytes.subarray(0, at),
        Uint8Array.from([5, ...leb128(section.length), ...section]),
        bytes.subarray(body + size),
      ]);
    }
    at = body + size;
  }
  throw new Error("the module has no memory");
}

/** Canvases of later pages have no WebGL 2 while `window.blind` is true. */
export const blind = (page: Page) =>
  page.addInitScript(() => {
    const { getContext } = HTMLCanvasElement.prototype;
    Object.assign(window, { blind: true });
    HTMLCanvasElement.prototype.getContext = function (
      this: HTMLCanvasElement,
      kind: string,
      ...rest: unknown[]
    ) {
      const none = kind === "webgl2" && (window as unknown as { blind: boolean }).blind;
      return none ? null : Reflect.apply(getContext, this, [kind, ...rest]);
    } as typeof getContext;
  });

/**
 * Counts the GL contexts of later pages that are not lost. It wraps `getContext`, because calling
 * `getContext` in a test would make a context.
 */
export async function contexts(page: Page): Promise<() => Promise<number>> {
  await page.addInitScript(() => {
    const { getContext } = HTMLCanvasElement.prototype;
    const made = new Set<WebGL2RenderingContext>();
    Object.assign(window, { made });
    HTMLCanvasElement.prototype.getContext = function (this: HTMLCanvasElement, ...how: unknown[]) {
      const context: unknown = Reflect.apply(getContext, this, how);
      if (context instanceof WebGL2RenderingContext) made.add(context);
      return context;
    } as typeof getContext;
  });
  return () =>
    page.evaluate(() => {
      const { made } = window as unknown as { made: Set<WebGL2RenderingContext> };
      return [...made].filter((context) => !context.isContextLost()).length;
    });
}

/** Number of workers that have finished their warm-up. */
export async function warmed(page: Page): Promise<number> {
  const isWarm = () => performance.getEntriesByName("vramscope warm").length > 0;
  // A worker may end during the query.
  const all = await Promise.all(
    page.workers().map((worker) => worker.evaluate(isWarm).catch(() => false)),
  );
  return all.filter(Boolean).length;
}

/**
 * Counts the workers of later pages: started, and started but not terminated. Playwright's own list
 * may keep a worker that was terminated right after its start.
 */
export async function workers(
  page: Page,
): Promise<() => Promise<{ started: number; alive: number }>> {
  await page.addInitScript(() => {
    const workers = { started: 0, ended: new Set<Worker>() };
    Object.assign(window, {
      workers,
      Worker: class extends Worker {
        constructor(...how: ConstructorParameters<typeof Worker>) {
          super(...how);
          workers.started += 1;
        }
        override terminate() {
          workers.ended.add(this);
          super.terminate();
        }
      },
    });
  });
  return () =>
    page.evaluate(() => {
      const { started, ended } = (
        window as unknown as { workers: { started: number; ended: Set<Worker> } }
      ).workers;
      return { started, alive: started - ended.size };
    });
}
