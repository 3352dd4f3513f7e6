// The `viewer` fixture: its page fails the test on a logged error or a request to another origin.

import { test as base, expect } from "@playwright/test";
import { Viewer } from "./viewer.js";

export { expect };

export const test = base.extend<{ viewer: Viewer }>({
  viewer: async ({ page, baseURL }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(`uncaught: ${error.message}`));
    page.on(
      "console",
      (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`),
    );
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      const local = origin === baseURL || protocol === "blob:" || protocol === "data:";
      if (!local) wrong.push(`asked another origin: ${request.url()}`);
    });
    await page.goto("/");
    await page.waitForFunction(() => "vramscope" in window);
    const viewer = new Viewer(page);
    await use(viewer);
    expect(
      wrong.filter((line) => !viewer.expectedErrors.some((part) => line.includes(part))),
    ).toEqual([]);
  },
});
