// Loads a file with the worker's wasm module under node and prints the seconds: the module is compiled and the file read
// before the clock starts. Build it first: `cargo xtask build`. With a number behind the file, it is loaded so often, and the
// best time is printed: what is left once the engine has optimised the module.

import { readFileSync } from "node:fs";
import { argv, stdout } from "node:process";
import { initSync, RankWorker } from "../web/viewer/wasm/memstrata_worker.js";

const CHUNK = 1 << 20;

initSync({ module: readFileSync(new URL("../web/viewer/wasm/memstrata_worker_bg.wasm", import.meta.url)) });
const bytes = readFileSync(argv[2]);
let best = Number.POSITIVE_INFINITY;
for (let run = 0; run < Number(argv[3] ?? 1); run += 1) {
  const start = performance.now();
  const worker = new RankWorker("bench", bytes.length);
  for (let at = 0; at < bytes.length; at += CHUNK) worker.feed(bytes.subarray(at, at + CHUNK), at + CHUNK);
  const response = worker.finish();
  best = Math.min(best, (performance.now() - start) / 1000);
  if (response.kind !== "loaded") throw new Error(JSON.stringify(response));
  worker.free();
}
stdout.write(`${best}\n`);
