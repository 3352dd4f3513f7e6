// Tests of `vramscope.show` in JupyterLab. `cargo xtask test --long` runs them. To run them by
// hand, name a Python that has jupyterlab and vramscope[notebook]:
// JUPYTER_PYTHON=/tmp/venv/bin/python npx playwright test -c jupyter.config.ts

import { defineConfig } from "@playwright/test";
import shared from "./playwright.config.js";

const { webServer, ...rest } = shared;

export default defineConfig(rest, {
  testDir: "jupyter",
  outputDir: "out/jupyter",
  workers: 1,
});
