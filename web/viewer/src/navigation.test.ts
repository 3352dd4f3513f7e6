import { beforeEach, expect, test } from "vitest";
import { Navigation } from "./navigation.js";
import { PLACE_IDS, placeOf, titleOf, VIEWS, viewsOf } from "./places/index.js";
import { Status } from "./status.js";

let navigation: Navigation;

beforeEach(() => {
  navigation = new Navigation(new Status(() => undefined));
});

test("each view has one place, which opens with its first view", () => {
  expect(PLACE_IDS).toHaveLength(6);
  expect(PLACE_IDS.flatMap((place) => viewsOf(place).map(([view]) => view))).toEqual(VIEWS);
  for (const place of PLACE_IDS) {
    navigation.openPlace(place);
    expect(navigation.view.value).toBe(viewsOf(place)[0]?.[0]);
    expect(placeOf(navigation.view.value)).toBe(place);
  }
  expect(new Set(VIEWS.map(titleOf)).size).toBe(VIEWS.length);
});

test("a place opens with the view that it showed last", () => {
  navigation.open("flame");
  navigation.open("matrix");
  navigation.openPlace("code");
  expect(navigation.view.value).toBe("flame");
  navigation.openPlace("ranks");
  expect(navigation.view.value).toBe("matrix");
});

test("the sheet belongs to the timeline, and remembers what it listed", () => {
  navigation.open("flame");
  navigation.openSheet("events");
  expect(navigation.view.value).toBe("timeline");
  expect(navigation.shownSheet.value).toBe("events");
  navigation.open("flame");
  expect(navigation.shownSheet.value).toBeNull();
  navigation.open("timeline");
  expect(navigation.shownSheet.value).toBe("events");
  navigation.toggleSheet();
  expect(navigation.shownSheet.value).toBeNull();
  navigation.toggleSheet();
  expect(navigation.shownSheet.value).toBe("events");
});

test("tracks fold", () => {
  navigation.toggleTrack("segments");
  expect(navigation.tracks.value).toEqual(["annotations", "segments"]);
  navigation.toggleTrack("annotations");
  expect(navigation.tracks.value).toEqual(["segments"]);
});
