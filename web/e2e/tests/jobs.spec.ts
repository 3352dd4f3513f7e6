// What people come for: each job is answered in words, within the clicks that a user has patience
// for. Opening the file is no click.

import type { Locator, Page } from "@playwright/test";
import { cli } from "../lib/cli.js";
import { renamed, testData } from "../lib/data.js";
import { expect, test } from "../lib/test.js";
import type { Picked, Viewer } from "../lib/viewer.js";

const OOM = "documents/oom_except.pickle.gz";
const LEAK = "recorded/gpt_leak.pickle.gz";
const SMALL = "recorded/t26/gpt_small.pickle.gz";

/** A user who opens files and clicks, and whose clicks are counted. */
class User {
  clicks = 0;

  constructor(
    readonly viewer: Viewer,
    readonly page: Page,
  ) {}

  /** Opens files and waits for the first place. */
  async open(...files: string[]): Promise<void> {
    const picked: Picked = files.map((file) => testData(file));
    await this.page.getByTestId("open-files").setInputFiles(picked);
    await this.viewer.settled();
  }

  async click(what: Locator): Promise<void> {
    this.clicks += 1;
    await what.click();
  }

  async place(name: string): Promise<void> {
    this.clicks += 1;
    await this.viewer.place(name);
  }

  async press(key: string): Promise<void> {
    this.clicks += 1;
    await this.page.keyboard.press(key);
  }

  /** The headline of the summary, or the line beside the places. */
  get verdict(): Locator {
    return this.page.getByTestId("verdict");
  }
}

interface Job {
  name: string;
  most: number;
  work(user: User): Promise<void>;
}

const tree = (page: Page) => page.getByTestId("modules-table");

const JOBS: readonly Job[] = [
  {
    name: "out of memory: where, how short, what fits",
    most: 0,
    work: async (user) => {
      await user.open(OOM);
      await expect(user.verdict).toContainText("Out of memory in backward of step 2");
      await expect(user.verdict).toContainText("326 MiB short");
      const fix = user.page.getByTestId("lever").first();
      await expect(fix).toContainText("fits", { timeout: 60_000 });
      await expect(user.page.getByTestId("place-summary")).toContainText("gpt.py:44");
    },
  },
  {
    name: "out of memory on the second device",
    most: 0,
    work: async (user) => {
      await user.open("findings/g33_oom_on_device_1.pickle.gz");
      await expect(user.verdict).toContainText("600 MiB short");
      await expect(user.viewer.device).toHaveValue("1");
    },
  },
  ...[LEAK, "findings/leak_opt_again.pickle.gz", "findings/leak_thread.pickle.gz"].map(
    (file): Job => ({
      name: `what grows in ${file}, and at which line`,
      most: 0,
      work: async (user) => {
        await user.open(file);
        const [worst] = cli("diagnose", file).findings;
        await expect(user.verdict).toContainText(worst?.title ?? "no finding", {
          ignoreCase: true,
        });
        const [line] = (worst?.sites[0] ?? "").split(" ");
        await expect(user.page.getByTestId("place-summary")).toContainText(line || "no line");
      },
    }),
  ),
  {
    name: "which rank differs, and why",
    most: 0,
    work: async (user) => {
      const ranks = [2, 3].map((rank) => `recorded/ranks_fsdp/rank${rank}_memory_snapshot`);
      await user.open(...ranks.map((rank) => `${rank}.pickle.gz`));
      await expect(user.verdict).toContainText(/Rank 3: Leak at .* per step/);
      await expect(user.page.getByTestId("place-summary")).toContainText("p_fsdp.py:27");
    },
  },
  {
    name: "what holds the peak",
    most: 1,
    work: async (user) => {
      await user.open(SMALL);
      await user.place("Summary");
      const { categories } = cli("peak", SMALL);
      const largest = categories.toSorted((a, b) => b.bytes - a.bytes)[0];
      await expect(
        user.page.locator(`.memory-part[data-part="${largest?.category}"]`),
      ).toHaveAttribute("data-value", String(largest?.bytes));
    },
  },
  {
    name: "why reserved exceeds what is in use",
    most: 1,
    work: async (user) => {
      await user.open("recorded/gpt_max_split.pickle.gz");
      await user.place("Allocator");
      await expect(user.page.getByTestId("reserved")).toContainText(
        /Reserved [\d.]+ GiB at most, for [\d.]+ GiB in use: .* cached/,
      );
    },
  },
  {
    name: "main against a branch",
    most: 1,
    work: async (user) => {
      await user.open("recorded/t26/gpt_small.pickle.gz", LEAK);
      await user.place("Compare");
      await expect(user.page.getByTestId("view-compare")).toContainText(/requested/i);
    },
  },
  {
    name: "how many blocks a search finds, and how large they are",
    most: 1,
    work: async (user) => {
      await user.open(SMALL);
      await user.click(user.page.getByTestId("search"));
      await user.page.keyboard.type("forward");
      await expect(user.page.getByTestId("results")).toContainText(/[\d,]+ blocks/);
    },
  },
  {
    name: "memory by layer",
    most: 1,
    work: async (user) => {
      await user.open(SMALL);
      await user.place("Code");
      await expect(tree(user.page)).toContainText(/forward/);
      await expect(tree(user.page).locator(".table-row").first()).toContainText(/[KMG]iB/);
    },
  },
  {
    name: "the largest batch on an A100 with 40 GB",
    most: 3,
    work: async (user) => {
      await user.open(SMALL);
      await user.place("Summary");
      await user.click(user.page.getByTestId("capacity"));
      await user.page.keyboard.type("A100-40GB");
      await user.press("Enter");
      await expect(user.page.getByTestId("levers")).toContainText(/x the batch or more fits/, {
        timeout: 60_000,
      });
    },
  },
  {
    name: "CUDA graphs: which pools lie idle, and the cure",
    most: 0,
    work: async (user) => {
      await user.open("findings/graph_pools_stranded.pickle.gz");
      await expect(user.page.getByTestId("place-summary")).toContainText(
        /6 pools of CUDA graphs at .*, one shared pool/,
      );
    },
  },
  {
    name: "one tensor: its line, its size, who freed it",
    most: 3,
    work: async (user) => {
      await user.open(LEAK);
      await user.place("Timeline");
      await user.press("q");
      await expect(
        user.page.getByTestId("blocks-table").locator("[data-key]").first(),
      ).toBeVisible();
      await user.click(user.page.getByTestId("blocks-table").locator("[data-key]").first());
      await expect(user.viewer.details.locator("[data-key=site]")).toBeVisible();
      await expect(user.viewer.details).toContainText(/freed/);
    },
  },
  {
    name: "the events before an out-of-memory error",
    most: 3,
    work: async (user) => {
      await user.open(OOM);
      await user.click(user.page.getByRole("button", { name: "Open the timeline" }));
      await user.press("q");
      await user.click(user.page.getByRole("tab", { name: "Events" }));
      await expect(user.page.getByTestId("events-table")).toContainText("oom");
    },
  },
  {
    name: "send it on",
    most: 2,
    work: async (user) => {
      await user.open(SMALL);
      await user.click(user.page.getByTestId("share"));
      for (const way of ["Copy a link", "HTML report", "Markdown", "PNG", "Perfetto"])
        await expect(user.page.locator(".menu-item:visible", { hasText: way })).toBeVisible();
    },
  },
  {
    name: "compiled code leads to the user's line",
    most: 1,
    work: async (user) => {
      await user.open("findings/c11_inductor.pickle.gz");
      await user.place("Summary");
      await expect(user.page.getByTestId("place-summary")).toContainText("train.py:40");
    },
  },
  {
    name: "what 8-bit Adam saves",
    most: 2,
    work: async (user) => {
      await user.open(SMALL);
      await user.place("Summary");
      await user.press("u");
      const row = user.page.locator('[data-testid=lever][data-id="optimizer:8bit"]');
      await expect(row).toContainText(/8-bit optimizer states.*[KMG]iB.*±/s, { timeout: 60_000 });
    },
  },
  {
    name: "what is left at the end",
    most: 2,
    work: async (user) => {
      await user.open(SMALL);
      await user.press("Control+k");
      await user.page.keyboard.type("left end");
      await user.press("Enter");
      await expect(user.page.getByTestId("chips")).toContainText("live@end");
      await expect(user.page.getByTestId("blocks-text")).toContainText(/blocks/);
    },
  },
];

for (const { name, most, work } of JOBS) {
  test(`${name}: ${most} clicks`, async ({ viewer, page }) => {
    const user = new User(viewer, page);
    await work(user);
    expect(user.clicks, "clicks").toBeLessThanOrEqual(most);
  });
}

test("the browser's Back goes to the place before, and closing the last file to the start", async ({
  viewer,
  page,
}) => {
  await viewer.show(testData(SMALL));
  await expect.poll(() => page.url()).toContain("view=timeline");
  for (const [name, view] of [
    ["Code", "modules"],
    ["Allocator", "map"],
  ] as const) {
    await viewer.place(name);
    await expect.poll(() => page.url()).toContain(`view=${view}`);
  }
  await page.goBack();
  await expect(page.getByTestId("place-code")).toBeVisible();
  await page.goBack();
  await expect(page.getByTestId("place-timeline")).toBeVisible();
  await page.goForward();
  await expect(page.getByTestId("place-code")).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("close");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("drop-zone")).toBeVisible();
});

test("a closed file leaves its row, and the others stay", async ({ viewer }) => {
  await viewer.open([renamed(SMALL, "rank0.pickle.gz"), renamed(SMALL, "rank1.pickle.gz")]);
  await viewer.row("rank0.pickle.gz").hover();
  await viewer.row("rank0.pickle.gz").getByTestId("close-file").click();
  await expect(viewer.rows).toHaveCount(1);
  await expect(viewer.row("rank1.pickle.gz")).toHaveAttribute("aria-selected", "true");
  await viewer.plot.drawn();
});
