// Builds the extension into dist/, with the tools and the built viewer of web/.

import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const viewer = at("../web/viewer/");
if (!existsSync(`${viewer}dist/index.js`) || !existsSync(`${viewer}wasm`))
  throw new Error("The viewer is not built: run `cargo xtask build` first.");
const { rolldown } = createRequire(at("../web/viewer/package.json"))("rolldown");

rmSync(at("dist"), { recursive: true, force: true });
mkdirSync(at("dist"));
for (const [name, platform, format] of [
  ["extension.cjs", "node", "cjs"],
  ["reader.cjs", "node", "cjs"],
  ["view.js", "browser", "iife"],
]) {
  const bundle = await rolldown({
    input: at(`src/${name.split(".")[0]}.ts`),
    platform,
    external: platform === "node" ? ["vscode", /^node:/] : [],
    resolve: { alias: { "vramscope-viewer": `${viewer}dist/index.js` } },
    // The parts of the viewer are given, so no address is made of the script's own.
    transform: { define: { "import.meta.url": '"vramscope:"' } },
    logLevel: "warn",
  });
  await bundle.write({ file: at(`dist/${name}`), format, minify: true, codeSplitting: false });
}
for (const part of ["view", "worker"])
  cpSync(`${viewer}wasm/vramscope_${part}_bg.wasm`, at(`dist/vramscope_${part}_bg.wasm`));
cpSync(at("src/view.css"), at("dist/view.css"));
cpSync(at("../web/site/public/icon-192.png"), at("dist/icon.png"));
for (const name of ["LICENSE-APACHE", "LICENSE-MIT", "THIRD_PARTY.txt"])
  cpSync(at(`../${name}`), at(name));
