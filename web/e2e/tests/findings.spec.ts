// Findings: those of the command line, and each opens the place that shows it.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { cli, cliIn, deviceOf, print } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Viewer } from "../lib/viewer.js";
import { Views } from "../lib/views.js";

const LEAK = "recorded/gpt_leak.pickle.gz";
const TRACEBACK = "findings/leak_traceback.pickle.gz";
const OOM = "recorded/oom_expandable.pickle.gz";
const SEVERITIES = ["high", "medium", "low"];

/** The view with the findings of low severity and what could not be looked for. */
async function unfold(views: Views): Promise<Locator> {
  const pane = await views.main("Findings");
  await expect(pane.getByTestId("finding").first()).toBeVisible();
  for (const control of [pane.getByTestId("small-findings"), pane.locator("summary")]) {
    if ((await control.count()) === 0) continue;
    const isOpen = await control.evaluate(
      (element) =>
        element.getAttribute("aria-expanded") === "true" ||
        (element.parentElement as HTMLDetailsElement).open === true,
    );
    if (!isOpen) await control.click();
  }
  return pane;
}

/** Opens a file, compares its findings with the command line's, and opens each finding. */
async function expectFindings(viewer: Viewer, file: string): Promise<Views> {
  const { findings, blind_spots } = cli("diagnose", file, "--all");
  const views = new Views(viewer);
  await views.open(testData(file));
  const pane = await unfold(views);
  const list = pane.getByTestId("finding");
  await expect(list).toHaveCount(findings.length);
  const shownFindings = () =>
    list.evaluateAll((all) =>
      all.map((finding) => ({
        id: finding.getAttribute("data-id"),
        kind: finding.getAttribute("data-kind"),
        bytes: Number(finding.getAttribute("data-value")),
        title: finding.querySelector(".finding-title")?.textContent,
        text: finding.querySelector(".finding-text")?.textContent,
        action: finding.querySelector("[data-action]")?.textContent ?? "",
        proof: finding.querySelector("svg[role=img]")?.getAttribute("aria-label") ?? "",
      })),
    );
  const byId = (a: { id: string | null }, b: { id: string | null }) =>
    String(a.id).localeCompare(String(b.id));
  const told = findings.map(({ id, kind, bytes, title, text, action, proof }) => {
    expect(title).not.toBe("");
    return { id, kind, bytes, title, text, action, proof: proof?.text ?? "" };
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

  for (const { id, kind, events, sites } of findings.filter((each) => each.events.length > 0)) {
    const first = Math.min(...events);
    const before = first === 1 ? 2 : 1;
    await views.cursor(before);
    await unfold(views);
    await pane.locator(`[data-testid=finding][data-id="${id}"] .finding-open`).click();
    await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
    // The state after event n is in slot n + 1.
    await expect
      .poll(async () => {
        const { x0, x1 } = await views.range();
        return x0 <= first + 1 && first + 1 <= x1;
      }, `${id} is in view`)
      .toBe(true);
    // A finding about blocks chooses them, and the cursor stays. Others are about a moment.
    const hasBlocks = kind === "oom" || sites.length > 0;
    await views.expectCursor(hasBlocks ? before : first);
  }
  return views;
}

test("findings are the command line's, open their place, and choose their blocks", async ({
  viewer,
  page,
}) => {
  const growth = cli("diagnose", LEAK, "--all").findings.find(({ kind }) => kind === "growth");
  if (!growth) throw new Error("the leak recording has no growth finding");
  const { blocks } = cli("blocks", LEAK);
  const kept = blocks.filter(({ live_at_end, site }) => live_at_end && growth.sites.includes(site));
  expect(kept.length, "blocks that stay").toBeGreaterThan(1);
  const views = await expectFindings(viewer, LEAK);
  await views.main("Timeline");
  await views.cursor(7);
  await (await views.drawer("Findings")).locator(`[data-id="${growth.id}"] .finding-text`).click();
  await expect(page.getByTestId("chips").locator("[data-term]")).toHaveCount(growth.sites.length);
  await views.expectCursor(7);
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
  const others = cli("diagnose", OOM, "--all").findings.flatMap(({ kind, events }) =>
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
  const { findings } = cli("diagnose", TRACEBACK, "--all");
  expect(Math.max(...findings.map(({ children }) => children.length))).toBeGreaterThan(3);
  const one = findings.find(({ events }) => events.length > 0);
  if (!one) throw new Error("no finding with an event");
  const whole = await views.range();
  const pane = await unfold(views);
  const row = (id: string) => pane.locator(`[data-testid=finding][data-id="${id}"]`);
  const [first = -1] = one.events;
  await row(one.id)
    .getByRole("button", { name: `#${first.toLocaleString("en-US")}` })
    .click();
  await views.expectCursor(first);
  await expect.poll(() => views.range()).toEqual(whole);
  await unfold(views);
  for (const { id, children } of findings) {
    const sites = row(id).getByRole("list", { name: "Call sites" });
    await expect(sites).toHaveCount(children.length === 0 ? 0 : 1);
    if (children.length === 0) continue;
    await expect(sites.getByRole("listitem")).toHaveCount(Math.min(3, children.length));
    const more = row(id).locator(".parts-more");
    await expect(more).toHaveCount(children.length > 3 ? 1 : 0);
    if (children.length <= 3) continue;
    await more.click();
    await expect(sites.getByRole("listitem")).toHaveCount(children.length);
    await expect(page.getByTestId("view-findings")).toHaveAttribute("data-place", "main");
  }
});

test("the charts draw the numbers of the command line", async ({ viewer }) => {
  const files = [
    LEAK,
    OOM,
    "findings/s7_two_copies.pickle.gz",
    "findings/zero_grad_kept_step.pickle.gz",
    "recorded/t26/streams.pickle.gz",
  ];
  const forms = new Set<string>();
  for (const file of files) {
    const views = new Views(viewer);
    await views.show(testData(file));
    const pane = await unfold(views);
    for (const { id, proof } of cli("diagnose", file, "--all").findings) {
      if (!proof) continue;
      forms.add(proof.form);
      const chart = pane.locator(`[data-id="${id}"]`).getByTestId("proof");
      await expect(chart.locator("figcaption")).toHaveText(proof.title);
      await expect(chart.getByRole("img")).toHaveAttribute("aria-label", proof.text);
      const shapes = (kinds: string[]) =>
        chart
          .locator(kinds.map((kind) => `[data-shape=${kind}][data-value]`).join(", "))
          .evaluateAll((all) => all.map((one) => Number(one.getAttribute("data-value"))));
      const drawn = await shapes(["value", "marked", "used", "other", "free"]);
      expect(drawn, id).toEqual(proof.form === "curve" ? proof.values.slice(-1) : proof.values);
      const marked = proof.marked.map((index) => proof.values[index]);
      if (proof.form !== "curve") expect(await shapes(["marked", "free"]), id).toEqual(marked);
    }
    await views.main("Timeline");
  }
  expect([...forms].toSorted()).toEqual(["columns", "curve", "lives", "parts"]);
});

test("one count: tab, verdict, heading, overview; low ones are folded", async ({
  viewer,
  page,
}) => {
  const { findings } = cli("diagnose", LEAK, "--all");
  const high = findings.filter(({ severity }) => severity !== "low");
  const low = findings.length - high.length;
  expect(Math.min(high.length, low), "some of both").toBeGreaterThan(0);
  await page.setViewportSize({ width: 1440, height: 900 });
  const views = new Views(viewer);
  await views.open(testData(LEAK));
  const count = String(high.length);
  await expect(page.getByTestId("verdict-count")).toHaveAttribute("data-value", count);
  const tab = page.getByRole("tablist", { name: "Views", exact: true }).locator(".count");
  await expect(tab).toHaveAttribute("data-value", count);
  await page.getByTestId("verdict-count").click();
  const pane = await views.main("Findings");
  await expect(pane.getByTestId("findings-count")).toHaveAttribute("data-value", count);
  await expect(pane.getByTestId("findings-count")).toContainText(count);
  await expect(pane.getByTestId("finding")).toHaveCount(high.length);
  const small = pane.getByTestId("small-findings");
  await expect(small).toContainText(`${low} small finding`);
  await small.click();
  await expect(pane.getByTestId("finding")).toHaveCount(findings.length);
  const overview = await views.main("Overview");
  await expect(overview.locator("[data-column=findings]")).toHaveAttribute("data-value", count);
});

test("a card chooses its blocks, stays, and opens its call stack and its blocks", async ({
  viewer,
  page,
}) => {
  const { findings } = cli("diagnose", LEAK, "--all");
  const growth = findings.find(({ kind }) => kind === "growth");
  if (!growth) throw new Error("no growth");
  const of = cli("blocks", LEAK).blocks.filter(({ site }) => growth.sites.includes(site));
  const views = new Views(viewer);
  await views.open(testData(LEAK));
  const pane = await views.main("Findings");
  const card = pane.locator(`[data-id="${growth.id}"]`);
  await views.cursor(7);
  await card.locator(".finding-text").click();
  await expect(card).toHaveAttribute("data-chosen", "true");
  await expect(page.getByTestId("chips").locator("[data-term]")).toHaveCount(growth.sites.length);
  await expect(page.getByTestId("view-findings")).toHaveAttribute("data-place", "main");
  await views.expectCursor(7);
  await card.getByRole("button", { name: "Call stack" }).click();
  const frames = card.getByRole("list", { name: "Call stack" }).getByRole("listitem");
  await expect(frames.first()).toContainText(growth.sites[0]?.split(" ")[0] ?? "a site");
  await card.getByRole("button", { name: "Blocks" }).click();
  const rows = card.getByRole("list", { name: "Blocks" }).locator("[data-value]");
  const sizes = of.map(({ bytes }) => bytes).toSorted((a, b) => b - a);
  await expect(rows).toHaveCount(Math.min(8, sizes.length));
  expect(await rows.evaluateAll((all) => all.map((one) => one.getAttribute("data-value")))).toEqual(
    sizes.slice(0, 8).map(String),
  );
  await rows.first().click();
  await expect(viewer.details.locator("[data-reference]")).toBeVisible();
  await card.getByRole("button", { name: "Show in timeline" }).click();
  await expect(views.pane("Timeline")).toHaveAttribute("data-place", "main");
});

test("a long list is shown in parts, and its counts are of all", async ({ viewer, page }) => {
  // Files of different runs are not ranks: each has cards of its own.
  const file = "findings/s1_pool_strand.pickle.gz";
  const { findings } = cli("diagnose", file, "--all");
  const [one] = findings;
  expect(one?.severity).not.toBe("low");
  const files = Array.from({ length: 45 }, (_, index) => renamed(file, `run-${index}x.pickle.gz`));
  const views = new Views(viewer);
  await views.open(files);
  const all = String(files.length * findings.length);
  await expect(page.getByTestId("verdict-count")).toHaveAttribute("data-value", all);
  const pane = await views.main("Findings");
  const cards = pane.getByTestId("finding");
  await expect(pane.getByTestId("findings-count")).toHaveAttribute("data-value", all);
  await expect(cards).toHaveCount(20);
  const more = pane.locator(".findings-more");
  await expect(more).toHaveText("Show 20 more of 25");
  await more.click();
  await expect(cards).toHaveCount(40);
  await expect(more).toHaveText("Show 5 more");
  await more.click();
  await expect(cards).toHaveCount(45);
  await expect(more).toHaveCount(0);
});

test("equal findings of ranks are one card, which links its ranks, the worst first", async ({
  viewer,
  page,
}, info) => {
  const folder = info.outputPath("run");
  mkdirSync(folder, { recursive: true });
  const names = [0, 1, 2, 3].map((rank) => `rank${rank}_memory_snapshot.pickle.gz`);
  for (const [rank, name] of names.entries()) {
    const of = rank === 3 ? 3 : 2;
    cpSync(testData(`recorded/ranks_fsdp/rank${of}_memory_snapshot.pickle.gz`), join(folder, name));
  }
  const { findings } = cliIn(folder, "diagnose", "--all", ...names);
  const { findings: main, omitted = 0 } = print(folder, ["diagnose", ...names]) as unknown as {
    findings: unknown[];
    omitted?: number;
  };
  expect(findings.length, "some are equal").toBeGreaterThan(main.length + omitted);
  const views = new Views(viewer);
  await views.open(names.map((name) => join(folder, name)));
  for (const name of names) await viewer.expectRow(name, "ready");
  // Ranks that are read later change what is folded.
  const notable = findings.filter(({ severity }) => severity !== "low").length;
  await expect(page.getByTestId("verdict-count")).toHaveAttribute("data-value", String(notable));
  const pane = await unfold(views);
  await expect(pane.getByTestId("finding")).toHaveCount(main.length + omitted);
  const reserved = findings
    .filter(({ kind }) => kind === "reserved")
    .toSorted((a, b) => b.bytes - a.bytes || a.path.localeCompare(b.path));
  expect(reserved.length).toBeGreaterThan(1);
  const card = pane.locator("[data-testid=finding][data-kind=reserved]");
  await expect(card).toHaveAttribute("data-value", String(reserved[0]?.bytes));
  await expect(card.locator(".finding-ranks")).toHaveText(
    `on ${reserved.length} of ${names.length} ranks:`,
  );
  const links = card.locator("[data-rank]");
  await expect(links).toHaveCount(reserved.length);
  expect(await links.evaluateAll((all) => all.map((one) => one.getAttribute("data-rank")))).toEqual(
    reserved.map(({ path }) => path),
  );
  await links.last().click();
  await expect(page.getByTestId("view-timeline")).toHaveAttribute("data-place", "main");
  await expect.poll(async () => (await viewer.state()).path).toBe(reserved.at(-1)?.path);
});
