import { chromium } from "@playwright/test";

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium-headless-shell",
  args: [
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=gl-egl",
    "--ignore-gpu-blocklist",
  ],
});
const out = "/tmp/wt/shots";
const page = await browser.newPage({
  viewport: { width: 1440, height: 900 },
  serviceWorkers: "block",
});
page.on("console", (m) => m.type() === "error" && console.log("console:", m.text()));
page.on("pageerror", (e) => console.log("pageerror:", e.message));
let gate;
const wait = new Promise((r) => (gate = r));
await page.route(/vramscope_worker_bg[^/]*\.wasm$/, async (route) => {
  await wait;
  await route.continue();
});
await page.goto("http://127.0.0.1:4292/");
await page.waitForTimeout(800);
await page.screenshot({ path: `${out}/0-landing.png` });
// a drop before the module is compiled
const fs = await import("node:fs");
const dir = "/tmp/wt/web/web/site/public/sample/";
const files = [0, 1, 2].map((r) => ({
  name: `rank${r}_memory_snapshot.pickle.gz`,
  b64: fs.readFileSync(`${dir}rank${r}_memory_snapshot.pickle.gz`).toString("base64"),
}));
await page.evaluate((files) => {
  const data = new DataTransfer();
  for (const { name, b64 } of files)
    data.items.add(new File([Uint8Array.from(atob(b64), (c) => c.charCodeAt(0))], name));
  const el = document.querySelector("vramscope-viewer");
  for (const type of ["dragenter", "dragover", "drop"])
    el.dispatchEvent(
      new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true, composed: true }),
    );
}, files);
await page.waitForTimeout(800);
await page.screenshot({ path: `${out}/1-waiting.png` });
gate();
await page.waitForTimeout(3500);
await page.screenshot({ path: `${out}/2-dropped.png` });
await page.keyboard.press("1");
await page.waitForTimeout(900);
await page.screenshot({ path: `${out}/3-overview.png` });
await page.keyboard.press("4");
await page.waitForTimeout(900);
await page.screenshot({ path: `${out}/4-flame.png` });
await page.keyboard.press("?");
await page.waitForTimeout(500);
await page.screenshot({ path: `${out}/5-sheet.png` });
await page.keyboard.press("Escape");
await page.evaluate(() =>
  window.vramscope.setState({
    view: "timeline",
    drawer: "settings",
    capacity: 8,
    theme: "dark",
    color: "category",
  }),
);
await page.waitForTimeout(1500);
await page.screenshot({ path: `${out}/6-settings-dark.png` });
await page.evaluate(() =>
  window.vramscope.setState({ view: "anomalies", drawer: "events", theme: "light" }),
);
await page.waitForTimeout(900);
await page.screenshot({ path: `${out}/7-anomalies.png` });
await page.evaluate(() => window.vramscope.setState({ view: "compare", drawer: "none" }));
await page.waitForTimeout(1500);
await page.screenshot({ path: `${out}/8-compare.png` });
await page.goto("http://127.0.0.1:4292/record/");
await page.screenshot({ path: `${out}/9-record.png`, fullPage: true });
await browser.close();
