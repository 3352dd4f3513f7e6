// What the build adds for a page that stays: the list of its files in the service worker, and a
// copy of the whole site under `/isolated/`, since a service worker can isolate only what is below
// it.

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Plugin } from "vite";

const COPY = "isolated";
/**
 * Pages that are not the landing page's own, and the sample, which is large and not needed to work.
 */
const LEFT_OUT = /^(sample|open|isolated)\/|^sw\.js$/;
/** Kept once it has been asked for: few need it. */
const LATER = /^threads\//;

function below(folder: string, prefix = ""): string[] {
  return readdirSync(join(folder, prefix), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? below(folder, `${prefix}${entry.name}/`) : [`${prefix}${entry.name}`],
  );
}

export function offline(): Plugin {
  let out = "";
  return {
    name: "vramscope-offline",
    apply: "build",
    configResolved({ root, build }) {
      out = resolve(root, build.outDir);
    },
    closeBundle() {
      const files = below(out).filter((file) => !LEFT_OUT.test(file));
      const hash = createHash("sha256");
      for (const file of files) hash.update(file).update(readFileSync(join(out, file)));
      const kept = files.filter((file) => !LATER.test(file));
      const names = kept.map((file) => `./${file.replace(/(^|\/)index\.html$/, "$1")}`);
      const known = `const FILES=${JSON.stringify(names)},VERSION=${JSON.stringify(hash.digest("hex").slice(0, 16))};\n`;
      const script = join(out, "sw.js");
      writeFileSync(script, known + readFileSync(script, "utf8"));

      const copy = join(out, COPY);
      rmSync(copy, { recursive: true, force: true });
      mkdirSync(copy);
      for (const file of [...files, "sw.js"])
        cpSync(join(out, file), join(copy, file), { recursive: true });
      const page = readFileSync(join(out, "index.html"), "utf8");
      const isolated = page
        .replace("<html ", "<html data-isolate ")
        .replace("./sample/", "../sample/");
      if (isolated === page) throw new Error("index.html has changed its shape");
      writeFileSync(join(copy, "index.html"), isolated);
    },
  };
}
