// Tests of the built site in a stock Firefox. Playwright drives only its own build of Firefox, so
// these tests use Puppeteer. Firefox needs an X display for WebGL.
// `cargo xtask test firefox` sets all of that. To run them by hand:
// FIREFOX=/usr/bin/firefox-esr xvfb-run -a npx playwright test -c firefox.config.ts

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
  retries: 0,
  reporter: [["list"]],
  use: { baseURL: origin },
  webServer: {
    command: `node server.mjs ${port}`,
    url: origin,
    reuseExistingServer: false,
    stdout: "ignore",
  },
});
