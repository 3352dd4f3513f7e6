// Faults on demand: workers that stop, memory that ends, files that are not what they should be.

import type { Page } from "@playwright/test";

/** The script of the page's workers. */
export const WORKER = /\/assets\/worker-[^/]*\.js$/;

/** How a worker may end. */
export type End = "throw" | "panic" | "outgrow" | "overflow";

/**
 * Before all that a worker does. It ends when it is told to: at once, outside of everything that it
 * does, or with a trap of WebAssembly in its next step.
 */
const PRELUDE = `
const told = { path: "", armed: "" };
addEventListener("message", ({ data }) => {
  if (data.kind === "load") told.path = data.path;
  if (data.kind === "run") told.path = "coordinator";
});
new BroadcastChannel("faults").onmessage = ({ data: { path, end } }) => {
  if (path !== told.path) return;
  if (end === "throw") throw new Error("boom");
  told.armed = end;
};
const STOPS = Uint8Array.of(0,97,115,109,1,0,0,0, 1,4,1,96,0,0, 3,2,1,0, 7,5,1,1,102,0,0, 10,5,1,3,0,0,11);
const trap = () => new WebAssembly.Instance(new WebAssembly.Module(STOPS)).exports.f();
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (module, imports) => {
  const instance = await instantiate(module, imports);
  const wrapped = { ...instance.exports };
  for (const name of ["rankworker_step", "runworker_handle"]) {
    wrapped[name] = (...rest) => {
      const end = told.armed;
      told.armed = "";
      if (end === "panic") console.error("panicked at crates/some/where.rs:7:5:\\nindex out of bounds\\n\\nStack:\\n\\nat a wall of it");
      if (end === "overflow") console.error("panicked at library/alloc/src/raw_vec/mod.rs:28:5:\\ncapacity overflow\\n\\nStack:\\n\\nat a wall of it");
      if (end === "outgrow") instance.exports.memory.grow(16_400);
      if (end) trap();
      return instance.exports[name](...rest);
    };
  }
  return Object.create(WebAssembly.Instance.prototype, { exports: { value: wrapped } });
};
`;

/** The same page with workers that can be ended; `prelude` goes before all that they do. */
export async function fragile(page: Page, prelude = PRELUDE): Promise<void> {
  // Whatever still asks for something goes first.
  await page.goto("about:blank");
  await page.route(WORKER, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${prelude}\n${await response.text()}` });
  });
  await page.goto("/");
  await page.waitForFunction(() => "vramscope" in window);
}

/** Tells the worker of a file, or the coordinator's, to end. */
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

/** An unsigned number at a place of a module, and where the next thing begins. */
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

function digits(value: number): number[] {
  const out: number[] = [];
  let left = value;
  do {
    out.push((left & 127) | (left > 127 ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return out;
}

/** A module whose memory grows by so many pages of 64 KiB and no more. */
export function bounded(module: Buffer, pages: number): Buffer {
  const bytes = new Uint8Array(module);
  for (let at = 8; at < bytes.length; ) {
    const { value: size, next: body } = number(bytes, at + 1);
    if (bytes[at] === 5) {
      const { value: least } = number(bytes, body + 2);
      const section = [1, 1, ...digits(least), ...digits(least + pages)];
      return Buffer.concat([
        bytes.subarray(0, at),
        Uint8Array.from([5, ...digits(section.length), ...section]),
        bytes.subarray(body + size),
      ]);
    }
    at = body + size;
  }
  throw new Error("the module has no memory");
}

/** The page's canvases give no WebGL 2 while `window.blind` is true. */
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
 * How many GL contexts the pages to come have made and not given back. A test that asks a canvas
 * for its context would make it.
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
  // One may end while it is asked.
  const all = await Promise.all(
    page.workers().map((worker) => worker.evaluate(isWarm).catch(() => false)),
  );
  return all.filter(Boolean).length;
}

/**
 * How many workers the pages to come have started, and how many of those they have not ended.
 * Playwright may keep one that was ended right after its start.
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
