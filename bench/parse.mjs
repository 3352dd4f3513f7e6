// Loads a file with the worker's wasm module under node: `node bench/parse.mjs FILE [LOADS]
// [warm]`, after `cargo xtask build`.
//
// Prints the seconds of the first load, the mean of the others, and the best. The others show the
// module after the engine has optimized it. The module is compiled, and a file below 1 GiB is read
// from disk, before the clock starts. `warm` warms the module up first, as the page's worker does
// before the first file. stderr gets the module's memory, which never shrinks: after the bytes of
// the first load, and after its analysis.

import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { argv, stderr, stdout } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { initSync, RankWorker } from "../web/viewer/wasm/vramscope_worker.js";

const CHUNK = 1 << 18;

const wasm = new URL("../web/viewer/wasm/vramscope_worker_bg.wasm", import.meta.url);
initSync({ module: readFileSync(wasm) });
const file = openSync(argv[2]);
const size = fstatSync(file).size;
// Buffers of node are limited to a few gigabytes.
const held = size < 1 << 30 ? readFileSync(argv[2]) : undefined;
const piece = new Uint8Array(CHUNK);
if (argv[4] === "warm") {
  const madeUp = RankWorker.madeUp();
  const half = madeUp.length >> 1;
  for (let times = 0; times < 200; times += 1) {
    const worker = new RankWorker("", madeUp.length);
    worker.feed(madeUp.subarray(0, half), half);
    worker.feed(madeUp.subarray(half), madeUp.length);
    worker.finish();
    if (times < 48) worker.postMadeUp();
    while (worker.step() !== undefined);
    worker.free();
  }
  // Optimized code is compiled in the background. Choosing a file takes longer than that.
  await sleep(500);
}
const times = [];
let memory = "";
for (let run = 0; run < Number(argv[3] ?? 1); run += 1) {
  const start = performance.now();
  const worker = new RankWorker("bench", size);
  for (let at = 0; at < size; at += CHUNK) {
    const bytes =
      held?.subarray(at, at + CHUNK) ?? piece.subarray(0, readSync(file, piece, 0, CHUNK, at));
    worker.feed(bytes, at + bytes.length);
  }
  const read = worker.memoryBytes();
  const response = worker.finish();
  times.push((performance.now() - start) / 1000);
  if (response.kind !== "loaded") throw new Error(JSON.stringify(response));
  memory ||= `wasm memory: ${read} bytes when read, ${worker.memoryBytes()} when loaded\n`;
  worker.free();
}
closeSync(file);
stderr.write(memory);
const [first, ...others] = times;
const mean = others.reduce((sum, time) => sum + time, 0) / others.length;
stdout.write(others.length > 0 ? `${first} ${mean} ${Math.min(...times)}\n` : `${first}\n`);
