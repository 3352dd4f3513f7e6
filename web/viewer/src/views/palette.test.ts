import { beforeEach, expect, test } from "vitest";
import { type FakeStores, fakeStores, stubDocument } from "../../test/fake-stores.js";
import { SHORTCUTS } from "../ui/keymap.js";
import { commandsOf } from "./palette.js";
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
      const command = known.find((one) => one.text === `${title}: ${text}`);
      const isHeld = !press || (release !== undefined && !repeat);
      expect(command?.keys, text).toEqual(isHeld ? undefined : shown);
    }
  expect(new Set(known.map(({ text }) => text)).size).toBe(known.length);
});

test("a command acts as its key, and on views without a key", () => {
  run("Horizontal: Jump to peak");
  expect(fake.viewSelection.cursor.value).toBe(2);
  run("Cursor and marks: Add a marker at the cursor");
  expect(fake.viewSelection.markers.value).toEqual([2]);
  run("Color by size");
  expect(fake.viewSelection.color.value).toBe("size");
  run("View: Blocks");
  expect(fake.navigation.drawer.value).toBe("blocks");
});

test("ranks can be pinned by name", () => {
  run("Pin rank2.pickle below the timeline");
  expect(fake.views.pins.toggle).toHaveBeenCalledExactlyOnceWith(fake.rows[2]);
});
