// Memory by module and layer, and shapes, with the numbers of the program.

import { writeFileSync } from "node:fs";
import { cli, type ModuleRecord, referenceOf, shapeWords } from "../lib/cli.js";
import { testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import { Views } from "../lib/views.js";
import { select } from "../lib/work.js";

const GPT = "truth/gpt_step.pickle.gz";
const EVENT = 1000;

/** The largest module with layers, and the modules around it, from the outermost. */
function layered(root: ModuleRecord): ModuleRecord[] {
  const next = root.children.find(({ basis }) => basis !== null);
  if (!next) throw new Error("no layers");
  return next.layers === undefined ? [next, ...layered(next)] : [next];
}

test("modules have the program's numbers, and choose their blocks", async ({ viewer, page }) => {
  const report = cli("modules", GPT, "--at", String(EVENT));
  const views = new Views(viewer);
  await views.show(testData(GPT));
  await views.cursor(EVENT);
  await page.evaluate(() => window.vramscope.setState({ view: "modules" }));
  const pane = views.pane("Modules");
  await expect(pane).toHaveAttribute("data-place", "main");
  await expect(pane.getByTestId("modules-text")).toHaveText(report.text.join(" "));
  const tree = pane.getByRole("treegrid", { name: "Memory by module" });
  const row = (name: string) => tree.locator(".table-row", { hasText: name }).first();
  const expectNumbers = async (record: ModuleRecord) => {
    const found = row(record.name);
    const values = {
      total: record.bytes,
      cursor: record.event_bytes,
      forward: record.forward_bytes,
      backward: record.backward_bytes,
      optimizer: record.optimizer_bytes,
      blocks: record.blocks,
    };
    for (const [column, value] of Object.entries(values))
      await expect(
        found.locator(`[data-column=${column}]`),
        `${column} of ${record.name}`,
      ).toHaveAttribute("data-value", String(value));
  };
  const chain = layered(report.root);
  const layers = chain.at(-1);
  const outside = report.root.children.find(({ name }) => name === "outside of modules");
  if (!layers?.layers || !outside) throw new Error("no layers, or nothing outside of modules");

  await test.step("open down to the layers", async () => {
    for (const record of [...chain, outside]) await expectNumbers(record);
    await expect(row(layers.name)).toContainText(`×${layers.layers}`);
    await expect(row(layers.name)).toHaveAttribute("aria-expanded", "false");
  });
  await test.step("arrow keys go and unfold", async () => {
    await row(layers.name).click();
    await expect(row(layers.name)).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowRight");
    await expect(row(layers.name)).toHaveAttribute("aria-expanded", "true");
    for (const layer of layers.children) await expectNumbers(layer);
    await page.keyboard.press("ArrowDown");
    const first = layers.children[0];
    if (!first) throw new Error("no layer");
    await expect(row(first.name)).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowLeft");
    await expect(row(layers.name)).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowLeft");
    await expect(row(layers.name)).toHaveAttribute("aria-expanded", "false");
  });
  await test.step("all views light the blocks of the module", async () => {
    const title = page.getByTestId("group").locator("h2");
    await expect(title).toHaveAttribute("data-value", String(layers.bytes));
    await expect(page.getByTestId("chips").locator("[data-term^='module:']")).toBeVisible();
    expect((await viewer.state()).filter).toContain("module:");
  });
});

test("a recording without modules says so", async ({ viewer }) => {
  const file = "findings/c17_state_only_crumbs.pickle.gz";
  const views = new Views(viewer);
  await views.open(testData(file));
  const pane = await views.main("Modules");
  const { text, root } = cli("modules", file);
  expect(text[0]).toContain("No call stack of this recording");
  await expect(pane.getByTestId("modules-text")).toHaveText(text.join(" "));
  await expect(pane.locator(".table-row").first().locator("[data-column=total]")).toHaveAttribute(
    "data-value",
    String(root.bytes),
  );
});

test("shapes are beside bytes: sums and blocks", async ({ viewer }) => {
  const report = cli("shapes", GPT);
  const views = new Views(viewer);
  await views.show(testData(GPT));
  await test.step("sums by shape and dimensions", async () => {
    const pane = await views.main("Shapes");
    const list = pane.getByTestId("shapes").locator("li.share");
    for (const [index, { shape, bytes }] of report.by_shape.slice(0, 5).entries()) {
      await expect(list.nth(index)).toContainText(shape.text);
      await expect(list.nth(index).locator("[data-value]")).toHaveAttribute(
        "data-value",
        String(bytes),
      );
    }
    await expect(pane.getByTestId("dims").locator("li")).toHaveText(
      report.legend.map(({ text }) => text),
    );
  });
  await test.step("a block", async () => {
    const block = cli("blocks", GPT).blocks.find(({ shape }) => shape?.is_certain === true);
    if (!block?.shape) throw new Error("no block has a shape");
    await select(viewer, referenceOf(block));
    await expect(viewer.fact("shape")).toHaveText(shapeWords(block.shape));
  });
});

test("widths and a config.json give shapes that sizes do not tell", async ({
  viewer,
  page,
}, info) => {
  const views = new Views(viewer);
  await views.show(testData(GPT));
  const pane = await views.main("Shapes");
  const expectShapes = async (...given: string[]) => {
    const report = cli("shapes", GPT, ...given);
    const list = pane.getByTestId("shapes").locator("li.share");
    for (const [index, { shape, bytes }] of report.by_shape.slice(0, 5).entries()) {
      await expect(list.nth(index)).toContainText(shape.text);
      await expect(list.nth(index)).toContainText(shape.symbols ?? "");
      await expect(list.nth(index).locator("[data-value]")).toHaveAttribute(
        "data-value",
        String(bytes),
      );
    }
    await expect(pane.getByTestId("dims").locator("li")).toHaveText(
      report.legend.map(({ text }) => text),
    );
    return report;
  };
  const told = await expectShapes();
  const [hidden] = told.dims.map((dims) => dims.hidden);
  if (hidden === undefined) throw new Error("no dimensions");
  const narrow = `${hidden},${4 * hidden}`;
  const block = cli("blocks", GPT, "--dims", narrow).blocks.find(({ shape }) => shape);
  if (!block?.shape) throw new Error("no block has a shape");
  await select(viewer, referenceOf(block));
  const field = pane.getByTestId("widths");
  await field.fill(narrow);
  await field.press("Enter");
  const given = await expectShapes("--dims", narrow);
  expect(given.by_shape).not.toEqual(told.by_shape);
  await expect(viewer.fact("shape")).toHaveText(shapeWords(block.shape));
  await field.fill("a few");
  await field.press("Enter");
  await expect(pane.getByTestId("widths-fault")).toContainText('"a" is no width');
  await expectShapes();

  const config = info.outputPath("config.json");
  const widths = { n_embd: hidden, n_head: 4, vocab_size: 5 * hidden + 1, n_inner: 9 * hidden };
  writeFileSync(config, JSON.stringify(widths));
  await page.getByTestId("add-files").setInputFiles(config);
  const configured = await expectShapes("--config", config);
  expect(configured.legend.map(({ name }) => name)).toContain("V");
  await expect(viewer.rows).toHaveCount(1);
  await pane.getByRole("button", { name: "Use the sizes of parameters" }).click();
  await expectShapes();
});

test("sizes that tell no shapes are refused", async ({ viewer }) => {
  const file = "truth/resnet18_step.pickle.gz";
  const { refused } = cli("shapes", file);
  const views = new Views(viewer);
  await views.show(testData(file));
  const pane = await views.main("Shapes");
  await expect(pane.getByTestId("shapes")).toContainText(refused ?? "refused");
  await expect(pane.getByTestId("dims")).toHaveCount(0);
});
