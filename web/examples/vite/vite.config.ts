import { defineConfig } from "vite";

// The worker is a module, because it imports chunks later. `assetsInlineLimit: 0` keeps wasm files
// out of the scripts.
export default defineConfig({
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0 },
});
