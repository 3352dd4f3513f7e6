// Tests of the extension in VS Code: the server of code-server, with Chromium as its window.
// `cargo xtask test --long=vscode` installs both and runs them.

import { defineConfig } from "@playwright/test";
import shared from "./playwright.config.js";

const { webServer, ...rest } = shared;

export default defineConfig(rest, {
  testDir: "vscode",
  outputDir: "out/vscode",
  workers: 1,
  // A webview of VS Code gets its files from a service worker.
  use: { serviceWorkers: "allow", screenshot: "only-on-failure" },
});
