// Tests of the built site in Chromium, which draws with Mesa's software GL.
// `cargo xtask test build e2e` sets the browser and the port. To run them by hand:
// CHROME=/usr/bin/chromium-headless-shell npm test -w e2e

import { defineConfig } from "@playwright/test";

const { CHROME, E2E_PORT } = process.env;
const port = Number(E2E_PORT ?? 4173);
const origin = `http://127.0.0.1:${port}`;

export default defineConfig({
  testDir: "tests",
  outputDir: "out/results",
  snapshotPathTemplate: "{testDir}/__screenshots__/{arg}{ext}",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  // Software GL keeps a core busy, so two workers saturate the two cores of the CI machine.
  workers: 2,
  // A test that passes only at its second try is flaky, and a flaky test is a fault to fix.
  retries: 0,
  reporter: [["list"]],
  use: {
    baseURL: origin,
    // Playwright cannot route requests that a service worker answers. offline.spec.ts allows it.
    serviceWorkers: "block",
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1,
    launchOptions: {
      ...(CHROME !== undefined && { executablePath: CHROME }),
      args: [
        "--headless=new",
        "--no-sandbox",
        "--use-gl=angle",
        "--use-angle=gl-egl",
        "--ignore-gpu-blocklist",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // The plots draw with GL. Compositing the page without GL saves time.
        "--disable-gpu-compositing",
        // A host name that is not a loopback name: see STRANGER in lib/folder.ts.
        "--host-resolver-rules=MAP host.example 127.0.0.1",
      ],
    },
  },
  webServer: {
    command: `node server.mjs ${port}`,
    url: origin,
    reuseExistingServer: false,
    stdout: "ignore",
  },
});
