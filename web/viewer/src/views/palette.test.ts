import { beforeEach, expect, test } from "vitest";
import { type FakeStores, fakeStores, stubDocument } from "../../test/fake-stores.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { commandsOf, matching, searchFor } from "./commands.js";
import { VIEW_SHORTCUTS } from "./shortcuts.js";

let fake: FakeStores;

beforeEach(() => {
  stubDocument();
  fake = fakeStores();
});

const commands = () => commandsOf({ ...fake.stores, ...fake.views } as never);

const run = (text: string) => {
  const command = commands().find((one) => one.text === text);
  if (!command) throw new Error(`no command has the text ${text}`);
  command.run();
};

test("each shortcut has a command, unless it lasts while its key is held", () => {
  const known = commands();
  for (const { title, shortcuts } of [...SHORTCUTS, ...VIEW_SHORTCUTS])
    for (const { text, shown, press, repeat, release } of shortcuts) {
      const command = known.find((one) => one.text === text && one.words === title);
      const isHeld = !press || (release !== undefined && !repeat);
      if (title === "Places" && command === undefined) {
        // A place is found as such, with its key where it has one view.
        expect(matching(known, text)[0]?.text).toContain(text);
        continue;
      }
      expect(command?.keys, text).toEqual(isHeld ? undefined : shown);
    }
  expect(new Set(known.map(({ words, text }) => `${words} ${text}`)).size).toBe(known.length);
});

test("a command acts as its key, and on views without a key", () => {
  run("Jump to peak");
  expect(fake.viewSelection.cursor.value).toBe(2);
  run("Add a marker at the cursor");
  expect(fake.viewSelection.markers.value).toEqual([2]);
  run("Color by size");
  expect(fake.viewSelection.color.value).toBe("size");
  run("Timeline: Blocks");
  expect(fake.navigation.shownSheet.value).toBe("blocks");
});

test("ranks can be pinned by name", () => {
  run("Pin rank2.pickle below the timeline");
  expect(fake.views.pins.toggle).toHaveBeenCalledExactlyOnceWith(fake.rows[2]);
});

test.each([
  ["share", "Copy a link"],
  ["report", "HTML report…"],
  ["perfetto", "Perfetto trace"],
  ["csv", "Findings as CSV"],
  ["flame", "Code: Call path"],
  ["fragmentation", "Allocator: At the cursor"],
  ["left end", "What is live at the end"],
  ["rank2", "rank2.pickle"],
  ["theme", "Theme: dark"],
  ["help", "Help: keys and gestures"],
  ["layer", "Code: Module"],
  ["who holds", "Code: Holder"],
  ["diff", "Timeline: A to B"],
  ["bf16", "Summary"],
  ["8-bit", "Summary"],
])("%s finds %s", (typed, text) => {
  expect(matching(commands(), typed).map((one) => one.text)).toContain(text);
});

test("a typed word begins a word, so that oom finds no zoom", () => {
  const found = matching(commands(), "oom").map(({ text }) => text);
  expect(found.filter((text) => /zoom/i.test(text))).toEqual([]);
  expect(matching(commands(), "nothing of this")).toEqual([]);
});

test("what the palette does not know is searched among the blocks", () => {
  searchFor({ ...fake.stores, ...fake.views } as never, " sdpa ").run();
  expect(fake.viewSelection.search.value).toBe("sdpa");
});
