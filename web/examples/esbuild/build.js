import { copyFile, readdir } from "node:fs/promises";
import { build } from "esbuild";

// The worker is an entry point of its own. `splitting` keeps chunks that are imported later apart.
await build({
  entryPoints: { main: "main.js", worker: "vramscope-viewer/worker.js" },
  bundle: true,
  minify: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  outdir: "dist",
});

const wasm = "node_modules/vramscope-viewer/wasm";
for (const name of await readdir(wasm)) {
  if (name.endsWith(".wasm")) await copyFile(`${wasm}/${name}`, `dist/${name}`);
}
for (const name of ["index.html", "style.css"]) await copyFile(name, `dist/${name}`);
