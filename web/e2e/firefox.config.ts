// The built site in Firefox, which Puppeteer drives: Playwright drives a Firefox of its own only.
// Firefox gives a page WebGL where there is an X display. `cargo xtask test firefox` brings all
// that; by hand: FIREFOX=/usr/bin/firefox-esr xvfb-run -a npx playwright test -c firefox.config.ts

import { defineConfig } from "@playwright/test";

const { E2E_PORT } = process.env;
const port = Number(E2E_PORT ?? 4174);
const origin = `http://127.0.0.1:${port}`;

export default defineConfig({
  testDir: "firefox",
  outputDir: "out/firefox",
  timeout: 90_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  retries: 1,
  reporter: [["list"]],
  use: { baseURL: origin },
  webServer: {
    command: `node server.mjs ${port}`,
    url: origin,
    reuseExistingServer: false,
    stdout: "ignore",
  },
});
