// Makes a TypeScript module of each style sheet, `a.css.ts` beside `a.css`, which exports its text:
// the element applies sheets itself, and plain modules need no bundler to load them.
// With --watch it goes on when a sheet changes.

import { existsSync, readdirSync, readFileSync, watch, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const sources = fileURLToPath(new URL("src", import.meta.url));

function write() {
  for (const name of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".css")) continue;
    const [sheet, module] = [`${sources}/${name}`, `${sources}/${name}.ts`];
    const text = `export default ${JSON.stringify(readFileSync(sheet, "utf8"))};\n`;
    // An unchanged module keeps its time, by which the compiler skips it.
    if (!existsSync(module) || readFileSync(module, "utf8") !== text) writeFileSync(module, text);
  }
}

write();
if (process.argv.includes("--watch"))
  watch(sources, { recursive: true }, (_, name) => {
    if (name?.endsWith(".css")) write();
  });
