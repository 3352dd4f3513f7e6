// The extension in VS Code: snapshots in an editor, findings as problems, frames as lines.

import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import type { VramscopeViewer } from "vramscope-viewer";
import { CodeServer, viewerIn } from "../lib/code-server.js";
import { testData } from "../lib/data.js";

const { CODE_SERVER, VSIX } = process.env;
const OOM = "oom_except.pickle.gz";

let code: CodeServer;

test.beforeAll(async () => {
  if (CODE_SERVER === undefined || VSIX === undefined)
    throw new Error("set CODE_SERVER and VSIX: see vscode.config.ts");
  code = new CodeServer(CODE_SERVER, VSIX);
  const { workspace } = code;
  cpSync(testData(`documents/${OOM}`), join(workspace, OOM));
  cpSync(testData("findings/ranks_fsdp2_skew"), join(workspace, "ranks"), { recursive: true });
  // The recording names /train/gpt.py, a path of another machine.
  mkdirSync(join(workspace, "train"));
  const lines = Array.from({ length: 60 }, (_, index) => `        line_${index + 1} = None`);
  lines[0] = "class GPT:";
  lines[16] = lines[30] = "    def forward(self):";
  writeFileSync(join(workspace, "train/gpt.py"), `${lines.join("\n")}\n`);
  await code.ready();
});

test.afterAll(() => code?.destroy());

test.beforeEach(({ page }) => code.open(page));

test("a snapshot opens, its finding is a problem, and a frame opens the line", async ({ page }) => {
  await code.file(page, OOM).dblclick();
  const viewer = viewerIn(page);
  const place = viewer.getByRole("button", { name: "gpt.py:44 forward" }).first();
  await expect(viewer.getByText(/^Out of memory in backward/).first()).toBeVisible();
  await page.screenshot({ path: "out/vscode-editor.png" });

  await place.click();
  const editor = page.getByRole("tab", { name: /^gpt\.py/ });
  await expect(editor).toHaveAttribute("aria-selected", "true");
  await expect(page.getByRole("button", { name: "Ln 44, Col 1" })).toBeVisible();

  await code.run(page, "Problems: Focus on Problems View");
  const problem = page.getByRole("treeitem", { name: /^Error: Out of memory in backward/ });
  await expect(problem).toContainText("vramscopeoom[Ln 44, Col 1]");
  await expect(problem).toContainText("fix 1: scaled_dot_product_attention, needs");
  await expect(page.getByRole("treeitem", { name: `recorded in ${OOM}` }).first()).toBeVisible();
  await page.screenshot({ path: "out/vscode-problems.png" });
});

test("the blocks are drawn, with source of the workspace", async ({ page }) => {
  await code.file(page, OOM).dblclick();
  const viewer = viewerIn(page);
  const element = viewer.locator("vramscope-viewer");
  const picture = () => element.evaluate((of) => (of as VramscopeViewer).stats().picture);
  await viewer.getByRole("tab", { name: "Timeline" }).click();
  await expect.poll(picture).toBe("blocks");
  await page.screenshot({ path: "out/vscode-timeline.png" });
  await element.evaluate((of) =>
    (of as VramscopeViewer).setState({ view: "source", source: "44:/train/gpt.py" }),
  );
  await expect(viewer.getByText("line_44 = None")).toBeVisible();
});

test("a folder is diagnosed, and closing it takes its problems away", async ({ page }) => {
  const tab = page.getByRole("tab", { name: /^ranks/ });
  await code.diagnose(page, "ranks", tab);
  const viewer = viewerIn(page);
  await expect(viewer.getByRole("tab", { name: "Ranks" })).toBeVisible();
  const problems = page.getByRole("treeitem", { name: /problems in file rank/ });
  await expect(problems.first()).toBeVisible();
  const skew = page.getByRole("treeitem", { name: /200\.0 MiB more than the other 3 ranks hold/ });
  await expect(skew).toBeVisible();
  await page.screenshot({ path: "out/vscode-folder.png" });
  await tab.click({ button: "middle" });
  await expect(tab).toHaveCount(0);
  await expect(problems).toHaveCount(0);
});
