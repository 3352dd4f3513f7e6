import { defineConfig } from "vitest/config";

// Unit tests in Node, without a DOM. Tests that need a browser are in e2e/.
export default defineConfig({
  test: { include: ["viewer/src/**/*.test.ts"], unstubGlobals: true },
});
