import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { documentPages, documents } from "./docs.ts";
import { gallery, galleryPages } from "./gallery.ts";
import { offline } from "./offline.ts";
import { report } from "./report.ts";

// Headers for cross-origin isolation, which the build with threads needs.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

// The build with threads, if it exists: plain files in a folder named after their hash. The
// development server does not use it, because it may be older than the sources.
const folder = fileURLToPath(new URL("public/threads", import.meta.url));
const build = existsSync(folder) ? readdirSync(folder)[0] : undefined;

/** Puts the viewer in one script beside the page: the program makes reports and notebooks of it. */
const inline = (): Plugin => ({
  name: "vramscope-inline",
  apply: "build",
  generateBundle() {
    for (const fileName of ["inline.js", "notebook.js"]) {
      const script = new URL(`../viewer/dist/client/${fileName}`, import.meta.url);
      this.emitFile({ type: "asset", fileName, source: readFileSync(script) });
    }
  },
});

/** Puts the licenses of the packages in the bundle beside it: minifying drops their comments. */
const notices = (): Plugin => ({
  name: "vramscope-notices",
  apply: "build",
  generateBundle() {
    const source = readFileSync(new URL("../../THIRD_PARTY.txt", import.meta.url));
    this.emitFile({ type: "asset", fileName: "THIRD_PARTY.txt", source });
  },
});

export default defineConfig(({ command }) => {
  const script =
    build && command === "build" ? `./threads/${build}/vramscope_worker_threads.js` : "";
  // Vite replaces VITE_ variables in index.html.
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
          ...galleryPages,
          ...documentPages,
          sw: "src/sw.ts",
        },
        // The service worker must have the same name in every version.
        output: {
          entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        },
      },
    },
    plugins: [inline(), notices(), report(), gallery(), documents(), offline()],
    // The viewer's package is served without bundling, so that its worker and wasm keep their URLs.
    optimizeDeps: {
      exclude: ["vramscope-viewer"],
      include: ["preact", "preact/hooks", "preact/jsx-runtime", "@preact/signals"],
    },
    server: { headers },
    preview: { headers },
  };
});
