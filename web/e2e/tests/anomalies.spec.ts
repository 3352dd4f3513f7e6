// Findings: those of the command line, and each opens the place that shows it.

import { cli, deviceOf } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const LEAK = "recorded/gpt_leak.pickle.gz";
const TRACEBACK = "findings/leak_traceback.pickle.gz";
const OOM = "recorded/oom_expandable.pickle.gz";
const SEVERITIES = ["high", "medium", "low"];

/** Opens a file, compares its findings with the command line's, and opens each finding. */
async function expectFindings(viewer: Viewer, file: string): Promise<Views> {
  const { anomalies, blind_spots } = cli("anomalies", file);
  const views = new Views(viewer);
  await views.open(testData(file));
  const pane = await views.main("Anomalies");
  const list = pane.getByTestId("finding");
  await expect(list).toHaveCount(anomalies.length);
  const shownFindings = () =>
    list.evaluateAll((all) =>
      all.map((finding) => ({
        id: finding.getAttribute("data-id"),
        kind: finding.getAttribute("data-kind"),
        bytes: Number(finding.getAttribute("data-value")),
        title: finding.querySelector(".finding-title")?.textContent,
        text: finding.querySelector(".finding-text")?.textContent,
        action: finding.querySelector("[data-action]")?.textContent ?? "",
      })),
    );
  const byId = (a: { id: string | null }, b: { id: string | null }) =>
    String(a.id).localeCompare(String(b.id));
  const told = anomalies.map(({ id, kind, bytes, title, text, action }) => {
    expect(title).not.toBe("");
    return { id, kind, bytes, title, text, action };
  });
  // What the model of the allocator says comes after the findings.
  await expect
    .poll(async () => (await shownFindings()).toSorted(byId))
    .toEqual(told.toSorted(byId));
  const blind = pane.getByTestId("blind-spots").getByRole("listitem");
  await expect(blind).toHaveText(blind_spots.map(({ text }) => text));
  const severities = await list.evaluateAll((all) =>
    all.map((one) => one.getAttribute("data-severity") ?? ""),
  );
  const order = severities.map((severity) => SEVERITIES.indexOf(severity));
  expect(order).not.toContain(-1);
  expect(order, "the most severe first").toEqual(order.toSorted((a, b) => a - b));

  for (const { id, events } of anomalies.filter((each) => each.events.length > 0)) {
    await views.main("Anomalies");
    await pane.locator(`[data-testid=finding][data-id="${id}"] .finding-open`).click();
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    const first = Math.min(...events);
    await views.expectCursor(first);
    // The state after event n is in slot n + 1.
    await expect
      .poll(async () => {
        const { x0, x1 } = await views.range();
        return x0 <= first + 1 && first + 1 <= x1;
      }, `${id} is in view`)
      .toBe(true);
  }
  return views;
}

test("findings are the command line's, open their place, and choose their blocks", async ({
  viewer,
  page,
}) => {
  const growth = cli("anomalies", LEAK).anomalies.find(({ kind }) => kind === "growth");
  if (!growth) throw new Error("the leak recording has no growth finding");
  const { blocks } = cli("blocks", LEAK);
  const kept = blocks.filter(({ live_at_end, site }) => live_at_end && growth.sites.includes(site));
  expect(kept.length, "blocks that stay").toBeGreaterThan(1);
  const views = await expectFindings(viewer, LEAK);
  await views.main("Timeline");
  await (await views.drawer("Anomalies")).locator(`[data-id="${growth.id}"] .finding-text`).click();
  await expect(page.getByTestId("chips").locator("[data-term]")).toHaveCount(growth.sites.length);
  await views.expectCursor(Math.min(...growth.events));
  const sum = kept.reduce((bytes, block) => bytes + block.bytes, 0);
  await expect(viewer.details.getByTestId("group").locator("[data-key=end] dd")).toHaveAttribute(
    "data-value",
    String(sum),
  );
  const of = blocks.filter(({ site }) => growth.sites.includes(site));
  await views.drawer("Blocks");
  await views.table("blocks").expectTotal(of.length);
  await page.keyboard.press("Escape");
  await expect(page.getByTestId("chips")).toHaveCount(0);
  await views.table("blocks").expectTotal(blocks.length);
});

test("out-of-memory events are findings and marks, which O, N and a click visit", async ({
  viewer,
  page,
}) => {
  const ooms = deviceOf(OOM).ooms.map(({ event }) => event);
  expect(ooms.length).toBeGreaterThan(1);
  const views = await expectFindings(viewer, OOM);
  const others = cli("anomalies", OOM).anomalies.flatMap(({ kind, events }) =>
    kind === "oom" ? [] : events,
  );
  await views.setState({ at: -1 });
  await views.expectCursor(-1);
  await page.keyboard.press("0");
  const marks = views.pane("Timeline").locator("button.mark[data-kind=oom]");
  await expect(marks).toHaveCount(ooms.length);
  await expect(page.locator(".minimap-mark[data-kind=oom]")).toHaveCount(ooms.length);
  for (const event of ooms.toSorted((a, b) => a - b)) {
    await page.keyboard.press("o");
    await views.expectCursor(event);
  }
  await page.keyboard.press("o");
  await expect
    .poll(async () => others.includes((await viewer.state()).at ?? -2), "then a finding")
    .toBe(true);
  // Without filters, N visits the findings in order of their events, Shift+N goes back.
  await views.setState({ filter: "" });
  await views.setState({ at: -1 });
  await views.expectCursor(-1);
  const seen: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    const { at: before } = await viewer.state();
    await page.keyboard.press("n");
    await expect.poll(async () => (await viewer.state()).at).not.toBe(before);
    seen.push((await viewer.state()).at ?? -2);
  }
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  await page.keyboard.press("Shift+N");
  await views.expectCursor(seen.at(-2) ?? -2);
  await page.keyboard.press("0");
  await views.settledRange();
  await views.cursor(0);
  await expect(marks).toHaveCount(ooms.length);
  const lefts = await marks.evaluateAll((all) =>
    all.map((mark) => mark.getBoundingClientRect().left),
  );
  // Marks may overlap, so use the keyboard.
  await marks.nth(lefts.indexOf(Math.max(...lefts))).focus();
  await page.keyboard.press("Enter");
  await views.expectCursor(Math.max(...ooms));
});

test("the place of a finding keeps the zoom, and its call sites open", async ({ viewer, page }) => {
  const views = new Views(viewer);
  await views.open(testData(TRACEBACK));
  const { anomalies } = cli("anomalies", TRACEBACK);
  expect(Math.max(...anomalies.map(({ children }) => children.length))).toBeGreaterThan(3);
  const one = anomalies.find(({ events }) => events.length > 0);
  if (!one) throw new Error("no finding with an event");
  const whole = await views.range();
  const pane = await views.main("Anomalies");
  const row = (id: string) => pane.locator(`[data-testid=finding][data-id="${id}"]`);
  const [first = -1] = one.events;
  await row(one.id)
    .getByRole("button", { name: `#${first.toLocaleString("en-US")}` })
    .click();
  await views.expectCursor(first);
  await expect.poll(() => views.range()).toEqual(whole);
  await views.main("Anomalies");
  for (const { id, children } of anomalies) {
    const sites = row(id).getByRole("list", { name: "Call sites" });
    await expect(sites).toHaveCount(children.length === 0 ? 0 : 1);
    if (children.length === 0) continue;
    await expect(sites.getByRole("listitem")).toHaveCount(Math.min(3, children.length));
    const more = row(id).locator(".parts-more");
    await expect(more).toHaveCount(children.length > 3 ? 1 : 0);
    if (children.length <= 3) continue;
    await more.click();
    await expect(sites.getByRole("listitem")).toHaveCount(children.length);
    await expect(page.getByTestId("view-anomalies")).toHaveAttribute("data-place", "main");
  }
});
