import { cp } from "node:fs/promises";

// The package as it is, beside the page. Its scripts, worker and wasm find each other.
for (const part of ["dist", "wasm"]) {
  await cp(`node_modules/vramscope-viewer/${part}`, `dist/vramscope/${part}`, { recursive: true });
}
for (const name of ["index.html", "style.css", "main.js"]) await cp(name, `dist/${name}`);
