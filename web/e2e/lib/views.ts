// All views: how they are opened, and how their content is read.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, type Locator, type Page } from "@playwright/test";
import type { ViewState } from "vramscope-viewer";
import { BANDS, type Band } from "./cli.js";
import { Plot } from "./plot.js";
import type { Viewer } from "./viewer.js";

/** The title of a view's tab. */
export type Tab =
  | "Overview"
  | "Timeline"
  | "Segments"
  | "Flame"
  | "Map"
  | "Matrix"
  | "Modules"
  | "Peak"
  | "Source"
  | "Steps"
  | "A to B"
  | "Findings"
  | "Compare"
  | "Blocks"
  | "Events"
  | "What if"
  | "Settings";

/** The name of a view in links. */
const idOf = (tab: Tab) => (tab === "A to B" ? "ab" : tab.toLowerCase().replace(" ", "-"));

export class Views {
  readonly page: Page;
  readonly moment: Locator;
  readonly brush: Locator;

  constructor(readonly viewer: Viewer) {
    this.page = viewer.page;
    this.moment = this.page.getByTestId("moment");
    this.brush = this.page.getByTestId("brush");
  }

  pane(tab: Tab): Locator {
    return this.page.getByTestId(`view-${idOf(tab)}`);
  }

  /** The switch of a line over the timeline. */
  line(name: "reserved" | "active" | "allocated"): Locator {
    return this.page
      .getByRole("group", { name: "Lines" })
      .getByRole("button", { name, exact: true });
  }

  /** Opens files and waits until the views are loaded, with or without a picture. */
  async open(...[files]: Parameters<Viewer["open"]>): Promise<void> {
    await this.viewer.open(files);
    if (typeof files === "string") await this.viewer.expectRow(basename(files), "ready");
    await expect(this.viewer.rows.first()).toHaveAttribute("data-state", "ready");
    await expect(this.page.getByTestId("color-by")).toBeAttached();
  }

  /** Opens files and waits for a picture. */
  async show(...[files]: Parameters<Viewer["open"]>): Promise<void> {
    await this.open(files);
    await this.viewer.plot.drawn();
  }

  /** Shows a view in the center. */
  async main(tab: Tab): Promise<Locator> {
    await this.#click("Views", tab);
    await expect(this.pane(tab)).toHaveAttribute("data-place", "main");
    return this.pane(tab);
  }

  /** Shows a view in the drawer. */
  async drawer(tab: Tab): Promise<Locator> {
    if ((await this.viewer.state()).drawer !== idOf(tab)) await this.#click("Drawer", tab);
    await expect(this.pane(tab)).toHaveAttribute("data-place", "drawer");
    return this.pane(tab);
  }

  /** Clicks a tab, or its item in the menu of those that do not fit. */
  async #click(list: "Views" | "Drawer", tab: Tab): Promise<void> {
    const tabs = this.page.getByRole("tablist", { name: list, exact: true });
    const found = tabs.getByRole("tab", { name: new RegExp(`^${tab}`) });
    const more = this.page.getByRole("button", { name: `More ${list.toLowerCase()}` });
    await expect(found.or(more).first()).toBeVisible();
    if ((await found.count()) > 0) return found.click();
    await more.click();
    await this.page.locator(".more-tabs .menu-item:visible", { hasText: tab }).click();
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

  /** The four bands of the state at the cursor. */
  async expectBands(bands: Record<Band, number>): Promise<void> {
    for (const band of BANDS) {
      await expect(this.moment.locator(`[data-key=${band}] dd`)).toHaveAttribute(
        "data-value",
        String(bands[band]),
      );
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

  sortBy(title: string): Promise<void> {
    return this.grid
      .getByRole("columnheader")
      .getByRole("button", { name: new RegExp(`^${title}`) })
      .click();
  }

  scrollTo(place: "top" | "end"): Promise<void> {
    return this.body.evaluate((body, to) => {
      body.scrollTop = to === "top" ? 0 : body.scrollHeight;
    }, place);
  }
}
