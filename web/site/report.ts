// Build step for reports in one HTML file: writes their template beside the page, with the hashes
// of its script and its style, which its policy allows.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

const TEMPLATE = new URL("report/report.html", import.meta.url);

/** The hash of the text of the only element with this tag. */
function hashOf(page: string, tag: string): string {
  const text = page.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0];
  if (text === undefined) throw new Error(`report.html has no <${tag}>`);
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

export function report(): Plugin {
  return {
    name: "vramscope-report",
    apply: "build",
    generateBundle() {
      const page = readFileSync(TEMPLATE, "utf8");
      const source = page
        .replace("{{script-hash}}", hashOf(page, "script"))
        .replace("{{style-hash}}", hashOf(page, "style"));
      this.emitFile({ type: "asset", fileName: "report.html", source });
    },
  };
}
