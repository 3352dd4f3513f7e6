// Compares the worker's two builds, with one thread and with several, on one large file: `node
// bench/threads.mjs FILE [RUNS]`, after `cargo xtask build`. CHROME names the browser. The builds
// take turns in one run, so their ratio counts. Their answers must be equal, byte for byte.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { argv, stdout } from "node:process";
import { withPages } from "./page.mjs";

const dist = new URL("../web/site/dist/", import.meta.url);
const [file, runs = "3"] = argv.slice(2);

const asset = (pattern) =>
  `assets/${readdirSync(new URL("assets/", dist)).find((name) => pattern.test(name))}`;
const [folder] = readdirSync(new URL("threads/", dist));
const parts = {
  version: JSON.parse(readFileSync(new URL("../web/viewer/package.json", import.meta.url), "utf8"))
    .version,
  worker: asset(/^worker-.*\.js$/),
  plain: asset(/^vramscope_worker_bg.*\.wasm$/),
  threaded: `threads/${folder}/vramscope_worker_threads.js`,
};

/**
 * Runs in the page: one worker from its start to its last answer. Returns milliseconds and a hash
 * for each request.
 */
async function measure([{ version, worker: script, plain, threaded }, threads]) {
  const module = (path) => WebAssembly.compileStreaming(fetch(path));
  const build = { script: new URL(threaded, document.baseURI).href, threads, alarm: "bench" };
  const prepare = {
    kind: "prepare",
    module: await module(plain),
    early: false,
    version,
    threaded:
      threads > 1
        ? { ...build, module: await module(threaded.replace(/\.js$/, "_bg.wasm")) }
        : null,
  };
  const worker = new Worker(script, { type: "module" });
  const [blob] = document.querySelector("#bench").files;
  const found = {};
  let started = 0;
  const heard = (wanted) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => {
        if (data.kind === "crashed" || data.response.kind === "failed")
          reject(new Error(JSON.stringify(data)));
        else if (wanted(data)) resolve(data);
      };
    });
  const note = async (what, answer) => {
    const ms = performance.now() - started;
    const columns = Object.values(answer.columns).map((column) => new Uint8Array(column.buffer));
    const bytes = new Blob([JSON.stringify(answer.response), ...columns]);
    const digest = await crypto.subtle.digest("SHA-256", await bytes.arrayBuffer());
    found[what] = {
      ms,
      hash: [...new Uint8Array(digest)].join(),
      threads: answer.threads,
      memory: answer.wasmBytes,
    };
  };
  const ask = async (what, query) => {
    started = performance.now();
    worker.postMessage({ kind: "ask", request: { view: { id: 3, target, query } } });
    await note(what, await heard(({ response }) => response.kind === "view"));
  };

  started = performance.now();
  worker.postMessage(prepare);
  const bounds = { events: null, memory: null };
  worker.postMessage({
    kind: "load",
    path: "bench.pickle",
    bytes: blob.size,
    source: blob,
    bounds,
  });
  const loaded = await heard(({ response }) => response.kind === "loaded");
  await note("load", loaded);
  const [part] = loaded.response.parts;
  const target = { part: 0, device: part.defaultDevice };
  await ask("analyses (a rank's card)", { card: {} });
  const table = { text: "", category: "", liveAt: null, descending: true };
  for (const sort of ["size", "byteSeconds", "site"]) {
    await ask(`sort, by ${sort}`, {
      blocks: { table: { ...table, sort }, from: 0, count: 100, near: null },
    });
  }
  worker.terminate();
  return found;
}

await withPages(true, async (open) => {
  const page = await open();
  await page.evaluate(() => {
    const input = Object.assign(document.createElement("input"), { type: "file", id: "bench" });
    document.body.replaceChildren(input);
  });
  await page.locator("#bench").setInputFiles(file);
  const cores = await page.evaluate(() => navigator.hardwareConcurrency);
  const threads = Math.min(Math.max(cores, 2), 8);
  const best = new Map();
  for (let run = 0; run < Number(runs); run += 1) {
    const one = await page.evaluate(measure, [parts, 1]);
    const many = await page.evaluate(measure, [parts, threads]);
    if (many.load.threads !== threads) throw new Error("the threads did not start");
    for (const [what, { ms, hash }] of Object.entries(one)) {
      if (many[what].hash !== hash)
        throw new Error(`${what}: the two builds do not answer the same`);
      const before = best.get(what) ?? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      best.set(what, [Math.min(before[0], ms), Math.min(before[1], many[what].ms)]);
    }
  }
  stdout.write(
    `${file}, ${statSync(file).size} bytes, best of ${runs}: 1 thread, ${threads} threads, ratio\n`,
  );
  for (const [what, [one, many]] of best) {
    const times = [one, many].map((ms) => `${ms.toFixed(0).padStart(7)} ms`).join(" ");
    stdout.write(`${what.padEnd(26)} ${times} ${(one / many).toFixed(2).padStart(6)}\n`);
  }
  stdout.write("the answers are the same\n");
});
