// The page: rows, controls and the canvas of the timeline.

import { expect, type Locator, type Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { Plot } from "./plot.js";

declare global {
  interface Window {
    vramscope: HTMLElement & {
      readonly ready: Promise<void>;
      load(inputs: (string | { name: string; buffer: ArrayBuffer })[]): Promise<void>;
      select(reference: string | null): Promise<boolean>;
      getState(): ViewState;
      setState(state: ViewState): void;
      pick(
        view: "timeline",
        x: number,
        y: number,
      ): Promise<{ block: number; reference: string; bytes: { raw: string } } | null>;
      limitMemory(bytes: number | null): void;
      stats(): {
        strips: number;
        instances: number;
        drawCalls: number;
        ranks: { path: string; wasmBytes: number; loadMs: number; threads: number }[];
      };
    };
  }
}

export type Picked = Parameters<Locator["setInputFiles"]>[0];

export class Viewer {
  readonly rows: Locator;
  readonly canvas: Locator;
  readonly details: Locator;
  readonly tooltip: Locator;
  readonly peak: Locator;
  readonly device: Locator;
  readonly plot: Plot;
  /** Substrings of the errors that a test provokes. */
  readonly expectedErrors: string[] = [];

  constructor(readonly page: Page) {
    this.rows = page.getByTestId("rank-row");
    this.canvas = page.getByTestId("timeline-canvas");
    this.details = page.getByTestId("details");
    this.tooltip = page.getByTestId("tooltip");
    this.peak = page.getByTestId("peak-value");
    this.device = page.getByLabel("Device", { exact: true });
    this.plot = new Plot(page, this.canvas);
  }

  /** Opens files and goes to the timeline, wherever they open. */
  async open(files: Picked): Promise<void> {
    await this.load(files);
    await this.place("Timeline");
  }

  /** Opens files in the place that the page chooses. */
  async load(files: Picked): Promise<void> {
    await this.page.getByTestId("open-files").setInputFiles(files);
    await this.settled();
  }

  /** Waits until the first place of the opened files is decided. */
  async settled(): Promise<void> {
    await expect(this.page.locator(".app[data-settled=true][data-stage=run]")).toBeAttached({
      timeout: 30_000,
    });
  }

  /** Opens a place. */
  async place(name: string): Promise<void> {
    const places = this.page.getByRole("tablist", { name: "Places", exact: true });
    // Files that are no ranks have another name.
    const title = name === "Ranks" ? "(Ranks|Files)" : name;
    await places.getByRole("tab", { name: new RegExp(`^\\d? ?${title}`) }).click();
  }

  /** Opens files and waits for a picture. */
  async show(file: Picked): Promise<void> {
    await this.open(file);
    await this.plot.drawn();
  }

  row(path: string): Locator {
    return this.page.locator(`[data-testid=rank-row][data-path="${path}"]`);
  }

  /** Waits until a row has this state. */
  async expectRow(path: string, state: "queued" | "loading" | "ready" | "error"): Promise<void> {
    await expect(this.row(path)).toHaveAttribute("data-state", state, { timeout: 30_000 });
  }

  /** The element with the exact peak in a row of the rail. */
  rowPeak(path: string): Locator {
    return this.row(path).locator("[data-value]");
  }

  state(): Promise<ViewState> {
    return this.page.evaluate(() => window.vramscope.getState());
  }

  /** Chooses all blocks, as one group: from now on a click on the timeline selects a block. */
  async chooseAll(): Promise<void> {
    await this.page.evaluate(() => window.vramscope.setState({ filter: ">=0B" }));
    await expect.poll(async () => (await this.state()).filter).toBe(">=0B");
    await this.plot.drawn();
  }

  /** A line of the details by its `data-key`. */
  fact(key: string): Locator {
    return this.details.locator(`[data-key="${key}"] dd`);
  }
}
