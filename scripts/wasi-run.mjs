// Runs a test program that was compiled for wasm32-wasip1, as cargo's runner: `node wasi-run.mjs
// program.wasm args...`. It sees the repository's folder and nothing else of the machine.

import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args: [program, ...args],
  env: process.env,
  preopens: { [root]: root, ".": process.cwd() },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
