// A hostile snapshot in VS Code: its names are shown, and none of them is a link.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, type Locator, type Page, test } from "@playwright/test";
import { CodeServer, viewerIn } from "../lib/code-server.js";
import { testData } from "../lib/data.js";
import { life, made } from "../lib/made.js";

const { CODE_SERVER, VSIX } = process.env;
const GIB = 2 ** 30;
const COMMAND = "command:workbench.action.togglePanel?%5B%22id%22%5D";
/** The file of the frame that is clicked on. */
const CLICKED = `/app/[Show the fix](${COMMAND})/train.py`;
/** Names, with a part of what VS Code then shows. */
const NAMES: [string, string][] = [
  [`/app/[a](${COMMAND} "Show the fix")/1.py`, "[a]"],
  ["/app/[a](command:x\n'title')[b\n](https://example.com/)/2.py", "\\u{a}'title'"],
  ["/app/\u202ekcip.exe\u2066\u200f\u200b/3.py", "/app/\\u{202e}kcip.exe\\u{2066}"],
  ["/app/🔥👩‍💻/4.py", "/app/🔥👩\\u{200d}💻/4.py"],
  [`/app/${"[a](command:x)".repeat(80_000)}/5.py`, "…"],
  [`/app/e${"\u0301".repeat(1_000_000)}/6.py`, "/app/e\u0301\u0301\u0301\u0301"],
  [
    "/app/\u001b[2J\r\n\t\u2028<a href='command:x'>link</a>$(flame)/7.py",
    "<a href='command:x'>link</a>",
  ],
];

let code: CodeServer;
/** The links of notifications, as this VS Code finds them. */
let link: RegExp;

test.beforeAll(async () => {
  if (CODE_SERVER === undefined || VSIX === undefined)
    throw new Error("set CODE_SERVER and VSIX: see vscode.config.ts");
  const window = join(dirname(CODE_SERVER), "vs/code/browser/workbench/workbench.js");
  const [, pattern] = /\/(\S*\|command:\|.*?)\/gi;/.exec(readFileSync(window, "utf8")) ?? [];
  link = new RegExp(pattern ?? "", "i");
  code = new CodeServer(CODE_SERVER, VSIX);
  const { workspace } = code;
  const blocks = [0, 1, 2].flatMap((at) => life(2 ** 40 + at * GIB, GIB, at));
  const oom = { at: 9, action: "oom", addr: 0, size: GIB, device_free: 0 } as const;
  const text = made("a.json", [...blocks, oom], []).buffer.toString();
  const write =
    "import json, pickle, sys; pickle.dump(json.load(sys.stdin), open(sys.argv[1], 'wb'))";
  execFileSync("python3", ["-c", write, join(workspace, "hostile.pickle")], {
    input: text.replaceAll("/train/made.py", CLICKED),
  });
  // A folder with a name of the same kind, and one that cannot be searched to its end.
  const folder = join(workspace, "[a](command:x)\u202e");
  mkdirSync(join(folder, ...Array.from({ length: 14 }, () => "deep")), { recursive: true });
  cpSync(testData("documents/oom_except.pickle.gz"), join(folder, "rank0.pickle.gz"));
  symlinkSync("..", join(folder, "loop"));
  writeFileSync(join(workspace, "own.py"), "own = 1\n");
  await code.ready();
});

test.afterAll(() => code?.destroy());

test.beforeEach(({ page }) => code.open(page));

/** The notification with these words. */
const notification = (page: Page, words: string): Locator =>
  page.locator(".notification-toast").filter({ hasText: words }).first();

/** Expects that a notification shows words and no link. */
async function expectNoLink(toast: Locator): Promise<void> {
  const message = toast.locator(".notification-list-item-message");
  await expect(message).toBeVisible();
  // A long message is cut until it is expanded.
  const expand = toast.locator(".codicon-notifications-expand");
  await toast.hover();
  if (await expand.isVisible()) await expand.click();
  await expect(message.locator("a")).toHaveCount(0);
  const words = (await message.textContent()) ?? "";
  expect(words).not.toMatch(link);
  expect([...words].length).toBeLessThanOrEqual(200);
}

test("a click on a frame with a hostile name shows a notification without a link", async ({
  page,
}) => {
  // This VS Code would make a link of the name.
  expect(CLICKED).toMatch(link);
  await code.file(page, "hostile.pickle").dblclick();
  const viewer = viewerIn(page);
  await viewer.getByRole("button", { name: "train.py:10" }).first().click();
  const toast = notification(page, "Show the fix");
  await expectNoLink(toast);
  await page.screenshot({ path: "out/vscode-hostile.png" });
  // A click on the words runs nothing.
  const panel = page.locator(".part.panel");
  const wasVisible = await panel.isVisible();
  await toast.locator(".notification-list-item-message").click();
  expect(await panel.isVisible()).toBe(wasVisible);
});

test("names with links, marks, controls and a million characters are shown", async ({ page }) => {
  await code.file(page, "hostile.pickle").dblclick();
  const viewer = viewerIn(page).locator("vramscope-viewer");
  await viewer.waitFor();
  for (const [file, shown] of NAMES) {
    await viewer.evaluate(
      (element, detail) => {
        element.dispatchEvent(new CustomEvent("vramscope-frame", { detail, cancelable: true }));
      },
      { file, line: 1 },
    );
    const toast = notification(page, shown);
    await expectNoLink(toast);
    if (file === NAMES.at(-1)?.[0]) await page.screenshot({ path: "out/vscode-hostile-name.png" });
    await code.run(page, "Notifications: Clear All Notifications");
    await expect(page.locator(".notification-toast")).toHaveCount(0);
  }
});

test("a folder with a hostile name is searched, and the limit is said without a link", async ({
  page,
}) => {
  const tab = page.getByRole("tab", { name: "\\u{202e}" });
  await code.diagnose(page, "[a](command:x)\u202e", tab);
  await expectNoLink(notification(page, "searches 12 folders deep"));
  await page.screenshot({ path: "out/vscode-hostile-folder.png" });
});
