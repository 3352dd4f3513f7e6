import { cp } from "node:fs/promises";

// Copy the package next to the page. Its scripts find the worker and the wasm files.
for (const part of ["dist", "wasm"]) {
  await cp(`node_modules/vramscope-viewer/${part}`, `dist/vramscope/${part}`, { recursive: true });
}
for (const name of ["index.html", "style.css", "main.js"]) await cp(name, `dist/${name}`);
