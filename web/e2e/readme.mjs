// Makes the pictures of the README from the built site and its sample run:
//   node server.mjs 4173 &  CHROME=/usr/bin/chromium node readme.mjs http://127.0.0.1:4173/

import { fileURLToPath } from "node:url";
import { chromium } from "@playwright/test";

const { CHROME } = process.env;
const [, , address = "http://127.0.0.1:4173/"] = process.argv;
const file = (name) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));

const browser = await chromium.launch({
  ...(CHROME !== undefined && { executablePath: CHROME }),
  args: [
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=gl-egl",
    "--ignore-gpu-blocklist",
  ],
});
for (const colorScheme of ["dark", "light"]) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme });
  await page.goto(address);
  await page.getByTestId("open-sample").click();
  await page.locator("[data-testid=rank-row][data-state=ready]").nth(7).waitFor();
  // The outlier, at its peak.
  await page.evaluate(() =>
    window.vramscope.setState({
      path: "rank5_memory_snapshot.pickle",
      view: "timeline",
    }),
  );
  await page.getByTestId("hint").getByRole("button").click();
  await page.locator(".minimap-fill").waitFor();
  await page.keyboard.press("p");
  await page.getByTestId("moment").waitFor();
  await page.mouse.move(2, 2);
  await page.waitForTimeout(2000);
  await page.screenshot({ path: file(`page-${colorScheme}.png`) });
  await page.close();
}
await browser.close();
