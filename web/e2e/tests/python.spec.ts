// scripts/vramscope_open.py: from a Python process to the page.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import { deviceOf, program } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { Viewer } from "../lib/viewer.js";

const SCRIPTS = fileURLToPath(new URL("../../../scripts/", import.meta.url));
const F01 = testData("scenarios/f01.pickle");
const PEAK = String(deviceOf(F01).requested_bytes.peak);

/** A fake torch that dumps a file of test_data/, and a fake browser that prints its address. */
const FAKES = `
import shutil, sys, types, webbrowser
dump = lambda path: shutil.copy(${JSON.stringify(F01)}, path)
memory = types.SimpleNamespace(_dump_snapshot=dump)
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=memory))
webbrowser.open = lambda address: print("browser", address, flush=True)
import vramscope_open
`;

/** Runs Python until `end`; `line` is the first line that it prints. */
async function python(code: string): Promise<{ line: string; end: () => Promise<void> }> {
  const child = spawn(
    "python3",
    ["-c", `${FAKES}\n${code}\nsys.stdout.flush()\nsys.stdin.read()`],
    {
      env: {
        ...process.env,
        PYTHONPATH: SCRIPTS,
        PYTHONDONTWRITEBYTECODE: "1",
        VRAMSCOPE: program,
        RANK: "3",
      },
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const end = async () => {
    const ended = once(child, "exit");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
  };
  return { line, end };
}

test("a script opens a browser, and the server ends with the script", async ({ page }) => {
  const { line, end } = await python("vramscope_open.show()");
  // The browser gets a file that only this user can read: its arguments are public.
  expect(line).toMatch(/^browser file:\/\/\S+\.html$/);
  const file = fileURLToPath(line.replace("browser ", ""));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await page.goto(line.replace("browser ", ""));
  await page.waitForURL(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\//);
  const address = page.url();
  const viewer = new Viewer(page);
  await viewer.settled();
  await viewer.place("Timeline");
  await viewer.plot.drawn();
  await expect(viewer.peak).toHaveAttribute("data-value", PEAK);
  await end();
  await expect
    .poll(() =>
      page.request.get(address).then(
        () => "answered",
        () => "gone",
      ),
    )
    .toBe("gone");
  expect(existsSync(file)).toBe(false);
});
