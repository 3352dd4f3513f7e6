// Build step for offline use: puts the list of files into the service worker, and copies the site
// to `/isolated/`, because a service worker can isolate only pages below itself.

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Plugin } from "vite";

const COPY = "isolated";
/** Files that are not cached: a page that needs the network, notebooks, licenses. */
const EXCLUDED = /^(open|isolated)\/|^(sw|notebook)\.js$|^THIRD_PARTY\.txt$/;
/** Files that are cached at their first use: recordings, which are large, and their pages. */
const LATER = /^(sample|gallery|threads)\/|^assets\/gallery-/;
/** Files of this folder only. */
const NOT_COPIED = /^(sample|gallery|docs)\/|^assets\/(gallery|docs)-/;

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
      const files = below(out).filter((file) => !EXCLUDED.test(file));
      const hash = createHash("sha256");
      for (const file of files) hash.update(file).update(readFileSync(join(out, file)));
      const version = hash.digest("hex").slice(0, 16);
      const script = readFileSync(join(out, "sw.js"), "utf8");
      const worker = (own: string[]) => {
        const names = (later: boolean) =>
          own
            .filter((file) => LATER.test(file) === later)
            .map((file) => `./${file.replace(/(^|\/)index\.html$/, "$1")}`);
        const values = { FILES: names(false), ON_DEMAND: names(true), VERSION: version };
        const known = Object.entries(values).map(
          ([name, value]) => `${name}=${JSON.stringify(value)}`,
        );
        return `const ${known};\n${script}`;
      };
      writeFileSync(join(out, "sw.js"), worker(files));

      const copy = join(out, COPY);
      rmSync(copy, { recursive: true, force: true });
      mkdirSync(copy);
      const copies = files.filter((file) => !NOT_COPIED.test(file));
      for (const file of copies) cpSync(join(out, file), join(copy, file), { recursive: true });
      writeFileSync(join(copy, "sw.js"), worker(copies));
      const page = readFileSync(join(out, "index.html"), "utf8");
      const isolated = page
        .replace("<html ", "<html data-isolate ")
        .replaceAll(/\.\/(?=(sample|gallery|docs|open)\/)/g, "../");
      if (isolated === page)
        throw new Error("index.html has no <html> tag or sample address to replace");
      writeFileSync(join(copy, "index.html"), isolated);
      const record = readFileSync(join(out, "record/index.html"), "utf8");
      writeFileSync(
        join(copy, "record/index.html"),
        record.replaceAll('href="../docs/', 'href="../../docs/'),
      );
    },
  };
}
