import { beforeEach, expect, test } from "vitest";
import { Navigation } from "./navigation.js";
import { Status } from "./status.js";

let navigation: Navigation;

beforeEach(() => {
  navigation = new Navigation(new Status(() => undefined));
});

test("the drawer is open under the timeline only, and each view remembers its own", () => {
  const { drawer } = navigation;
  expect(drawer.value).toBe("segments");
  for (const view of ["overview", "segments", "flame", "compare"] as const) {
    navigation.center(view);
    expect(drawer.value, view).toBeNull();
  }
  navigation.center("flame");
  navigation.openDrawer("blocks");
  navigation.center("timeline");
  expect(drawer.value).toBe("segments");
  navigation.toggleDrawer();
  navigation.center("flame");
  expect(drawer.value).toBe("blocks");
  navigation.center("timeline");
  expect(drawer.value).toBeNull();
});

test("the drawer is closed without room, unless it was chosen", () => {
  const { drawer } = navigation;
  navigation.setDrawerFits(false);
  expect(drawer.value).toBeNull();
  navigation.setDrawerFits(true);
  expect(drawer.value).toBe("segments");
  navigation.openDrawer("blocks");
  navigation.setDrawerFits(false);
  expect(drawer.value).toBe("blocks");
});

test("a view in the center is not in the drawer, too", () => {
  navigation.openDrawer("timeline");
  expect(navigation.drawer.value).toBeNull();
});

test("what the user chose for the verdict outlives the page", () => {
  const kept = new Map<string, string>();
  const memory = {
    get: (key: string) => kept.get(key) ?? null,
    set: (key: string, value: string) => void kept.set(key, value),
  };
  const next = () => new Navigation(new Status(() => undefined), memory);
  next().setVerdictOpen(false);
  const later = next();
  expect(later.verdictOpen.value).toBe(false);
  later.verdictFits.value = true;
  expect(later.verdictOpen.value).toBe(false);
});
