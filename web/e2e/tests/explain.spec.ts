// An out-of-memory message that is pasted on the landing page: people without a snapshot.

import { execFileSync } from "node:child_process";
import { expectNoBarrier, THEMES } from "../lib/barriers.js";
import { program } from "../lib/cli.js";
import { expect, test } from "../lib/test.js";

const MESSAGE =
  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total " +
  "capacity of 31.37 GiB of which 15.88 MiB is free. Including non-PyTorch memory, this process " +
  "has 31.34 GiB memory in use. Of the allocated memory 28.74 GiB is allocated by PyTorch, and " +
  "2.41 GiB is reserved by PyTorch but unallocated.";

test("a pasted message is explained in the words of the program", async ({ viewer: _, page }) => {
  const box = page.getByTestId("explain-text");
  const said = page.getByTestId("explained");
  await box.fill(MESSAGE);
  const text = execFileSync(program, ["explain", MESSAGE], { encoding: "utf8" });
  const lines = text.split("\n");
  const headline = lines[0]?.replace("error[oom]: ", "") ?? "";
  expect(headline).toContain("100.0 MiB asked");
  await expect(said).toContainText(headline);
  // The first words are the cause, not the kind of the message.
  expect(await said.locator("h4").textContent()).toMatch(/^GPU 0: 100\.0 MiB asked/);
  for (const { start, words } of [
    { start: "fix 1: ", words: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" },
    { start: "help: ", words: "vramscope record -o runs/oom train.py ARGS" },
  ]) {
    expect(lines.find((line) => line.startsWith(start))).toContain(words);
    await expect(said).toContainText(words);
  }
  await said.getByText("What each figure means").click();
  await expect(said.getByText("28.74 GiB").first()).toBeVisible();
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await expectNoBarrier(page, theme, "an explained message");
  }

  await box.fill("step 12 loss 3.14");
  await expect(said).toContainText("No out-of-memory message found in 1 line");
  await box.fill("");
  await expect(said).toHaveCount(0);
});

test("markup in a pasted message is text", async ({ viewer: _, page }) => {
  const hostile =
    "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB <img src=x onerror=alert(1)>" +
    "<script>document.title='broken'</script>";
  await page.getByTestId("explain-text").fill(hostile);
  const said = page.getByTestId("explained");
  await expect(said).toContainText("1.00 GiB");
  expect(await said.locator("img, script").count()).toBe(0);
  expect(await page.title()).not.toBe("broken");
});

test("the box shows five lines, and the answer moves nothing above itself", async ({
  viewer: _,
  page,
}) => {
  const box = page.getByTestId("explain-text");
  const lines = ["Traceback (most recent call last):", "  File", "    step()", "  File", "Error"];
  await box.fill(lines.join("\n"));
  expect(await box.evaluate((of) => of.scrollHeight - of.clientHeight)).toBeLessThanOrEqual(0);
  const zone = page.getByTestId("drop-zone");
  const before = await zone.boundingBox();
  await box.fill(`${lines.join("\n")}\n${MESSAGE}`);
  await expect(page.getByTestId("explained")).toContainText("100.0 MiB asked");
  expect(await zone.boundingBox()).toEqual(before);
});

test("a pasted link opens its file on the page that may fetch it", async ({
  viewer,
  page,
  baseURL,
}) => {
  const [box, link] = [page.getByTestId("explain-text"), page.getByTestId("open-link")];
  const file = (name: string) => `${baseURL}/sample/${name}.pickle.gz`;
  await box.fill(file("oom"));
  await expect(link).toHaveText(`Open from ${new URL(baseURL ?? "").host}`);
  await link.click();
  await viewer.expectRow("oom.pickle.gz", "ready");
  expect(new URL(page.url()).pathname).toBe("/open/");
  // The page itself takes links, too.
  await page.goto("/open/");
  await box.fill(`${file("rank0_memory_snapshot")} ${file("rank1_memory_snapshot")}`);
  await link.click();
  await expect(viewer.rows).toHaveCount(2);
  await viewer.expectRow("rank1_memory_snapshot.pickle.gz", "ready");
});
