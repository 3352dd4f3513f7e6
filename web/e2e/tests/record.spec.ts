// The page about recording snapshots.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { expect, test } from "../lib/test.js";

const read = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${name}`, import.meta.url)), "utf8");
const DOC = read("docs/record.md");
const FORMAT = read("crates/vramscope-snapshot/FORMAT.md");

test("the record page is linked both ways, fits a phone, and has no serious barrier", async ({
  viewer,
  page,
}) => {
  await test.step("links", async () => {
    await page.getByRole("link", { name: "how to record" }).click();
    await expect(page).toHaveURL(/\/record\/$/);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Record a memory snapshot");
    await page.getByRole("link", { name: "Open a snapshot" }).first().click();
    await expect(viewer.page.getByTestId("drop-zone")).toBeVisible();
  });
  await test.step("axe and width", async () => {
    await page.setViewportSize({ width: 420, height: 900 });
    await page.goto("/record/");
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        420,
      );
      await expectNoBarrier(page, theme, "record");
    }
  });
});

test("the record page has code and table of the documents, and reaches no server", async ({
  page,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/record/");
  await test.step("code and table", async () => {
    const fences = [...DOC.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code]) => code);
    const shown = await page.locator("pre").allTextContents();
    expect(shown.length).toBe(3);
    for (const code of shown) expect(fences).toContain(code);

    const known = FORMAT.split("## By release")[1]?.matchAll(/^\| (\d[\d.]+) \| (.*) \|$/gm) ?? [];
    const releases = new Map(
      [...known].map(([, release, text]) => [release, text?.replaceAll("`", "")]),
    );
    const rows = await page.locator("tbody tr").evaluateAll((all) =>
      all.map((row) => {
        const cells = [...row.children].map((cell) => cell.textContent.replace(/\s+/g, " ").trim());
        return [cells[0] ?? "", cells[1] ?? ""] as const;
      }),
    );
    expect(rows.length).toBeGreaterThan(8);
    for (const [release, text] of rows) expect(text, release).toBe(releases.get(release));
  });
  await test.step("the buttons copy the whole code", async () => {
    const copy = page.locator("figure button");
    await expect(copy).toHaveText(["Copy", "Copy", "Copy"]);
    await copy.first().click();
    await expect(copy.first()).toHaveText("Copied");
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      await page.locator("pre").first().textContent(),
    );
    await expect(copy.first()).toHaveText("Copy");
  });
  await test.step("no fetch is allowed", async () => {
    const asked = (address: string) =>
      page.evaluate(
        (url) =>
          fetch(url, { mode: "no-cors" }).then(
            () => true,
            () => false,
          ),
        address,
      );
    expect(await asked("/favicon.svg")).toBe(false);
    expect(await asked("http://localhost:1/")).toBe(false);
  });
});
