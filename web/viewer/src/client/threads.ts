// The worker's side of the build with threads: a package of plain files, imported by its address,
// since a bundler cannot follow how its threads start it again. They are workers of this worker,
// and end with it.

import type * as plain from "../../wasm/vramscope_worker.js";
import type { ThreadsBuild } from "./messages.js";

/** What both builds of the worker's module export. */
export type Engine = Pick<typeof plain, "default" | "RankWorker" | "RunWorker">;

type ThreadedEngine = Engine & { initThreadPool(threads: number): Promise<void> };

declare global {
  /**
   * Where the script of the threads, which is patched in crates/xtask/src/threads.rs, finds the
   * channel's name.
   */
  var vramscopeAlarm: string | undefined;
}

/**
 * A thread whose script is refused says nothing: then this is how long a file waits before one
 * thread reads it.
 */
const START_MS = 10_000;

/**
 * With all threads running; null where that cannot be had, which is no failure: one thread reads
 * the file as well.
 */
export async function startThreads({
  script,
  module,
  threads,
  alarm,
}: ThreadsBuild): Promise<Engine | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), START_MS);
  });
  const started = async () => {
    const engine: ThreadedEngine = await import(/* @vite-ignore */ script);
    await engine.default({ module_or_path: module });
    globalThis.vramscopeAlarm = alarm;
    await engine.initThreadPool(threads);
    return engine;
  };
  try {
    return await Promise.race([started(), late]);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}
