import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { offline } from "./offline.ts";

// What makes a page cross-origin isolated, so that a build with threads can be tried on the same
// server.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

// The build with threads, if there is one: plain files that are copied as they are, in a folder
// that is named after them. A development server does without: what it serves is newer.
const folder = fileURLToPath(new URL("public/threads", import.meta.url));
const build = existsSync(folder) ? readdirSync(folder)[0] : undefined;

export default defineConfig(({ command }) => {
  const script =
    build && command === "build" ? `./threads/${build}/vramscope_worker_threads.js` : "";
  // For index.html, as every VITE_ variable.
  process.env.VITE_THREADS = script;
  return {
    base: "./",
    worker: { format: "es" },
    build: {
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        input: {
          index: "index.html",
          open: "open/index.html",
          record: "record/index.html",
          sw: "src/sw.ts",
        },
        // A service worker has the same name in every version.
        output: {
          entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        },
      },
    },
    plugins: [offline()],
    // The viewer is another package of this workspace: it is served as it is, so that its worker
    // and wasm keep their URLs.
    optimizeDeps: {
      exclude: ["vramscope-viewer"],
      include: ["preact", "preact/hooks", "preact/jsx-runtime", "@preact/signals"],
    },
    server: { headers },
    preview: { headers },
  };
});
