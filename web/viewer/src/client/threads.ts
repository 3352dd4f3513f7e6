// The worker's side of the build with threads. It is a package of plain files that is imported by
// its address, because a bundler cannot follow how its threads import it again. The threads are
// workers of this worker and end with it.

import type * as plain from "../../wasm/vramscope_worker.js";
import type { ThreadsBuild } from "./messages.js";

/** The exports of both builds of the worker's module. */
export type Engine = Pick<typeof plain, "default" | "RankWorker" | "RunWorker">;

type ThreadedEngine = Engine & { initThreadPool(threads: number): Promise<void> };

declare global {
  /** The name of the alarm channel, for the threads' script (see crates/xtask/src/threads.rs). */
  var vramscopeAlarm: string | undefined;
}

/** Timeout for starting threads: a thread whose script is blocked reports nothing. */
const START_MS = 10_000;

/** Starts all threads. Null if that fails: the file is then read by one thread. */
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
