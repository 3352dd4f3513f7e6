// VS Code in a browser: its server with the extension installed, and a folder that is open in it.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, type FrameLocator, type Locator, type Page } from "@playwright/test";

/** Settings of a window that nothing interrupts. */
const SETTINGS = {
  "extensions.ignoreRecommendations": true,
  "telemetry.telemetryLevel": "off",
  "workbench.startupEditor": "none",
  "workbench.editor.enablePreview": false,
};

export class CodeServer {
  /** The folder that is open. */
  readonly workspace: string;
  readonly #folder: string;
  readonly #server: ChildProcess;
  #address = "";

  /** `main` is the script of the server, `vsix` the packaged extension. */
  constructor(main: string, vsix: string) {
    this.#folder = mkdtempSync(join(tmpdir(), "vscode-"));
    this.workspace = join(this.#folder, "work");
    const data = join(this.#folder, "data");
    mkdirSync(this.workspace);
    mkdirSync(join(data, "Machine"), { recursive: true });
    writeFileSync(join(data, "Machine/settings.json"), JSON.stringify(SETTINGS));
    const flags = ["--user-data-dir", data, "--extensions-dir", join(this.#folder, "extensions")];
    execFileSync(process.execPath, [main, ...flags, "--install-extension", vsix]);
    const serve = ["--host", "127.0.0.1", "--port", "0", "--without-connection-token"];
    serve.push("--disable-workspace-trust");
    this.#server = spawn(process.execPath, [main, ...flags, ...serve], {
      stdio: ["ignore", "pipe", "ignore"],
    });
  }

  /** Resolves when the server listens. */
  async ready(): Promise<void> {
    if (!this.#server.stdout) throw new Error("the server has no standard output");
    for await (const line of createInterface({ input: this.#server.stdout })) {
      const [, address] = /available at (http:\S+)/.exec(line) ?? [];
      if (address === undefined) continue;
      this.#address = address;
      return;
    }
    throw new Error("the server has ended");
  }

  /** Opens the folder in a window. Resolves when extensions run. */
  async open(page: Page): Promise<void> {
    await page.goto(`${this.#address}/?folder=${encodeURIComponent(this.workspace)}`);
    await page.locator(".explorer-folders-view .monaco-list-row").first().waitFor();
    // The window learns of extensions after it is drawn.
    await expect(async () => {
      await this.#palette(page, "vramscope");
      await page.getByText("Diagnose folder").first().waitFor({ timeout: 2000 });
    }).toPass();
    await page.keyboard.press("Escape");
  }

  /** Runs a command by its title. */
  async run(page: Page, title: string): Promise<void> {
    await this.#palette(page, title);
    await page.locator(".quick-input-list").getByText(title).first().click();
  }

  async #palette(page: Page, words: string): Promise<void> {
    const input = page.locator(".quick-input-widget input");
    // A key that comes while the window is busy is lost.
    await expect(async () => {
      await page.keyboard.press("Escape");
      await page.locator(".monaco-workbench").press("F1");
      await input.fill(`>${words}`, { timeout: 2000 });
    }).toPass();
  }

  /** A file or folder in the explorer. */
  file(page: Page, name: string): Locator {
    return page.locator(".explorer-folders-view").getByText(name, { exact: true });
  }

  /** Diagnoses a folder of the explorer. Resolves when its tab is open. */
  async diagnose(page: Page, name: string, tab: Locator): Promise<void> {
    // A menu that comes while the window is busy loses its focus.
    await expect(async () => {
      await this.file(page, name).click({ button: "right" });
      const item = page.getByRole("menuitem", { name: "Diagnose folder" });
      await item.hover({ timeout: 2000 });
      await item.press("Enter");
      await tab.waitFor({ timeout: 15_000 });
    }).toPass();
  }

  destroy(): void {
    this.#server.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The viewer in the webview that is in front. */
export function viewerIn(page: Page): FrameLocator {
  return page.frameLocator("iframe.webview.ready").last().frameLocator("#active-frame");
}
