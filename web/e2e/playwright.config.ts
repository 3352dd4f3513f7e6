// The built site in a real browser, which draws with Mesa's software GL. `cargo xtask test build
// e2e` sets the browser and the port; by hand: CHROME=/usr/bin/chromium-headless-shell npm test -w
// e2e

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
  // Two cores, and GL in software: more tests side by side would only wait for each other.
  workers: 2,
  // Machines that are shared with others stall for seconds at times. What passes only at the second
  // try is listed as flaky.
  retries: 1,
  reporter: [["list"]],
  use: {
    baseURL: origin,
    // A page whose files come from a service worker cannot be watched; offline.spec allows it.
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
        // The plots draw with GL; what is around them is put together without, to save time.
        "--disable-gpu-compositing",
        // A page that is not of this machine by its name: see lib/folder.ts.
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
