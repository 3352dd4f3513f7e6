import { defineConfig } from "vite";

// What makes a page cross-origin isolated, so that a build with threads can be tried on the same server.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

export default defineConfig({
  base: "./",
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  // The viewer is another package of this workspace: it is served as it is, so that its worker and wasm keep their URLs.
  optimizeDeps: {
    exclude: ["memstrata-viewer"],
    include: ["preact", "preact/hooks", "preact/jsx-runtime", "@preact/signals"],
  },
  server: { headers },
  preview: { headers },
});
