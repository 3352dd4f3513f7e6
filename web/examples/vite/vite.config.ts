import { defineConfig } from "vite";

// The worker fetches a second part of its code later, which only a module can. In a library, wasm
// would become text in the script: `assetsInlineLimit: 0` keeps it a file.
export default defineConfig({
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0 },
});
