// All views: how they are opened, and how their content is read.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, type Locator, type Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { BANDS, type Band } from "./cli.js";
import { Plot } from "./plot.js";
import type { Viewer } from "./viewer.js";

/** The views of each place, by the label of its switch; null where a place has one view. */
const MAIN = {
  Summary: ["Summary", null, "summary"],
  Timeline: ["Timeline", null, "timeline"],
  Modules: ["Code", "Module", "modules"],
  Flame: ["Code", "Call path", "flame"],
  Source: ["Code", "File and line", "source"],
  Shapes: ["Code", "Shape", "shapes"],
  Holders: ["Code", "Holder", "holders"],
  Map: ["Allocator", "At the cursor", "map"],
  Segments: ["Allocator", "Over time", "segments"],
  Ranks: ["Ranks", "Table", "ranks"],
  Matrix: ["Ranks", "Matrix", "matrix"],
  Compare: ["Compare", null, "compare"],
} as const;
export type Main = keyof typeof MAIN;

/** What the sheet below the timeline lists. */
export type SheetTab = "Blocks" | "Events" | "A to B" | "Peak" | "Steps";

const isMain = (tab: Main | SheetTab): tab is Main => tab in MAIN;

/** The name of a view in links. */
const idOf = (tab: Main | SheetTab) =>
  isMain(tab) ? MAIN[tab][2] : tab === "A to B" ? "ab" : tab.toLowerCase();

export class Views {
  readonly page: Page;
  readonly moment: Locator;
  readonly brush: Locator;

  constructor(readonly viewer: Viewer) {
    this.page = viewer.page;
    this.moment = this.page.getByTestId("moment");
    this.brush = this.page.getByTestId("brush");
  }

  /** Gives the GPU in its field on the summary, and shows the view again that was open. */
  async gpu(text: string): Promise<Locator> {
    const before = await this.page.evaluate(() => window.vramscope.getState().view);
    await this.main("Summary");
    const field = this.page.getByTestId("capacity");
    await field.fill(text);
    await field.press("Enter");
    await expect(field).toHaveValue(text);
    if (before) await this.page.evaluate((view) => window.vramscope.setState({ view }), before);
    return field;
  }

  pane(tab: Main | SheetTab): Locator {
    return this.page.getByTestId(`view-${idOf(tab)}`);
  }

  /** The switch of a line over the timeline. */
  line(name: "reserved" | "active" | "allocated"): Locator {
    return this.page.locator(`.legend-lines button[data-band=${name}]`);
  }

  /** Opens files and waits until the views are loaded, with or without a picture. */
  async open(...[files]: Parameters<Viewer["open"]>): Promise<void> {
    await this.viewer.open(files);
    if (typeof files === "string") await this.viewer.expectRow(basename(files), "ready");
    await expect(this.viewer.rows.first()).toHaveAttribute("data-state", "ready");
    // Without a history there is no toolbar.
    const tools = this.page.getByTestId("color-by").or(this.page.getByText(/No timeline|is empty/));
    await expect(tools.first()).toBeAttached();
  }

  /** Opens files and waits for a picture. */
  async show(...[files]: Parameters<Viewer["open"]>): Promise<void> {
    await this.open(files);
    await this.viewer.plot.drawn();
  }

  /** Shows a view in the center. */
  async main(tab: Main): Promise<Locator> {
    const [place, label] = MAIN[tab];
    await this.viewer.place(place);
    if (label !== null)
      await this.page
        .getByRole("tablist", { name: `Views of ${place}` })
        .getByRole("tab", { name: label, exact: true })
        .click();
    await expect(this.pane(tab)).toHaveAttribute("data-place", "main");
    return this.pane(tab);
  }

  /** Shows a list in the sheet below the timeline. */
  async sheet(tab: SheetTab): Promise<Locator> {
    await this.viewer.place("Timeline");
    const tabs = this.page.getByRole("tablist", { name: "Sheet", exact: true });
    if (!(await tabs.isVisible())) await this.page.getByRole("button", { name: "Lists" }).click();
    await tabs.getByRole("tab", { name: tab, exact: true }).click();
    await expect(this.pane(tab)).toHaveAttribute("data-place", "sheet");
    return this.pane(tab);
  }

  /** Unfolds the segments below the timeline. */
  async track(): Promise<Locator> {
    await this.viewer.place("Timeline");
    const fold = this.page.locator(".track-fold").getByRole("button", { name: "Segments" });
    if ((await fold.getAttribute("aria-expanded")) === "false") await fold.click();
    await expect(this.pane("Segments")).toHaveAttribute("data-place", "track");
    return this.pane("Segments");
  }

  /** Chooses a way to share. */
  async share(item: string): Promise<void> {
    await this.page.getByTestId("share").click();
    await this.page.locator(".menu-item:visible", { hasText: item }).click();
  }

  /** Sets the state by the element's method. */
  async setState(state: ViewState): Promise<void> {
    await this.page.evaluate((to) => {
      const { vramscope } = window as unknown as { vramscope: { setState(to: unknown): void } };
      vramscope.setState(to);
    }, state);
  }

  /** Puts the time cursor after an event. */
  async cursor(event: number): Promise<void> {
    await this.setState({ at: event });
    await this.expectCursor(event);
  }

  async expectCursor(event: number): Promise<void> {
    await expect.poll(async () => (await this.viewer.state()).at).toBe(event);
    await expect(this.moment).toHaveAttribute("data-event", String(event));
  }

  /** Bytes of a line at the cursor, in the legend. */
  band(band: Band): Locator {
    return this.page.locator(`.legend-bytes[data-key=${band}]`);
  }

  /** The four bands of the state at the cursor. The legend has the bytes of the lines shown. */
  async expectBands(bands: Record<Band, number>): Promise<void> {
    for (const band of BANDS) {
      const line = this.page.locator(
        `.legend-lines [data-band=${band.replace("_bytes", "")}][aria-pressed=false]`,
      );
      const isHidden = (await line.count()) > 0;
      if (isHidden) await line.click();
      await expect(this.band(band)).toHaveAttribute("data-value", String(bands[band]));
      if (isHidden) await this.band(band).click();
    }
  }

  /** Bytes of categories at the cursor, in the legend. */
  async expectCategories(
    categories: readonly { category: string; bytes: number }[],
  ): Promise<void> {
    for (const { category, bytes } of categories) {
      const entry = this.page.getByTestId("legend").locator(`[data-term="category:${category}"]`);
      await expect(entry.locator(".legend-bytes")).toHaveAttribute("data-value", String(bytes));
    }
  }

  /** A line of the details card, by its `data-key`. */
  fact(key: string): Locator {
    return this.viewer.details.locator(`[data-kind] [data-key="${key}"] dd`);
  }

  /** The range in view. */
  async range(): Promise<{ x0: number; x1: number }> {
    const { x0, x1 } = await this.viewer.state();
    if (x0 === undefined || x1 === undefined) throw new Error("nothing is shown");
    return { x0, x1 };
  }

  /** The range in view after the easing of a jump has ended. */
  async settledRange(): Promise<{ x0: number; x1: number }> {
    // Counted in frames: a jump moves in every frame, and a busy page has few.
    await this.page.evaluate(async () => {
      const { vramscope } = window as unknown as { vramscope: { getState(): ViewState } };
      const read = () => {
        const { x0, x1 } = vramscope.getState();
        return `${x0} ${x1}`;
      };
      let [before, same] = [read(), 0];
      while (same < 4) {
        await new Promise((done) => requestAnimationFrame(done));
        const now = read();
        same = now === before ? same + 1 : 0;
        before = now;
      }
    });
    return this.range();
  }

  async zoomTo(x0: number, x1: number): Promise<void> {
    await this.setState({ x0, x1 });
    await expect.poll(async () => Math.abs((await this.range()).x0 - x0)).toBeLessThan(1);
    await this.viewer.plot.drawn();
  }

  async search(text: string): Promise<void> {
    const box = this.page.getByTestId("search");
    await box.fill(text);
    // Without the focus, its results do not cover the plots.
    await box.blur();
    await expect.poll(async () => (await this.viewer.state()).find ?? "").toBe(text);
  }

  plot(testid: string): Plot {
    return new Plot(this.page, this.page.getByTestId(testid));
  }

  /** Drags from one point of a canvas to another, while a key is held. */
  async drag(
    testid: string,
    from: [number, number],
    to: [number, number],
    key?: "Alt" | "Shift",
  ): Promise<void> {
    const { mouse, keyboard } = this.page;
    const plot = this.plot(testid);
    if (key) await keyboard.down(key);
    await plot.moveTo(...from);
    await mouse.down();
    await plot.moveTo((from[0] + to[0]) / 2, (from[1] + to[1]) / 2);
    await plot.moveTo(...to);
    await mouse.up();
    if (key) await keyboard.up(key);
  }

  table(what: "blocks" | "events" | "code" | "source"): Grid {
    return new Grid(this.page.getByTestId(`${what}-table`));
  }

  /** Clicks a button and reads the download that it starts. */
  async download(button: Locator): Promise<{ name: string; bytes: Buffer }> {
    const coming = this.page.waitForEvent("download");
    await button.click();
    const download = await coming;
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  }
}

/** The attribute `data-value` of all elements, as numbers. */
export const valuesOf = (all: Locator): Promise<number[]> =>
  all.evaluateAll((elements) =>
    elements.map((element) => Number(element.getAttribute("data-value"))),
  );

/** A table that renders only the rows in sight. */
export class Grid {
  readonly body: Locator;
  readonly rows: Locator;

  constructor(readonly grid: Locator) {
    this.body = grid.locator("[role=rowgroup]");
    this.rows = grid.locator("[role=row][data-key]");
  }

  expectTotal(total: number): Promise<void> {
    return expect(this.grid).toHaveAttribute("data-total", String(total));
  }

  /** A column of the rendered rows. */
  values(column: string): Promise<number[]> {
    return valuesOf(this.rows.locator(`[data-column=${column}]`));
  }

  async texts(column: string): Promise<string[]> {
    const texts = await this.rows.locator(`[data-column=${column}]`).allTextContents();
    return texts.map((text) => text.trim());
  }

  /** Without a `timeout` it waits for the column as long as the test runs. */
  sortBy(title: string, timeout = 0): Promise<void> {
    return this.grid
      .getByRole("columnheader")
      .getByRole("button", { name: new RegExp(`^${title}`) })
      .click({ timeout });
  }

  scrollTo(place: "top" | "end"): Promise<void> {
    return this.body.evaluate((body, to) => {
      body.scrollTop = to === "top" ? 0 : body.scrollHeight;
    }, place);
  }
}
