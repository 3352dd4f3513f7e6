import { expect, test } from "vitest";
import {
  formatState,
  markersOf,
  parseState,
  pinsOf,
  rangeOf,
  rulersOf,
  type ViewState,
  validState,
} from "./view-state.js";

const FULL: ViewState = {
  view: "flame",
  sheet: "none",
  tracks: "annotations,free",
  path: "run 1/rank0 & co #2.pickle",
  part: 2,
  device: 7,
  a: "run 1/rank1.pickle",
  aPart: 1,
  pins: "0:run 1/rank3.pickle|1:run 1/rank4.pickle",
  cell: "3:my file.py:88 <module>",
  axis: "time",
  x0: -1.5,
  x1: 1234.125,
  sel: "0:0x7f00aa@~12",
  range: "event:1000:3000",
  at: -1,
  from: 200,
  to: -1,
  markers: "500,-1,1500",
  rulers: "y:event:1000:1000:0:2048,x:time:0:1:0:0",
  capacity: 79.1,
  whatIf: "expandable_segments:True,device_memory:80 GiB,batch:2,del:train.py:12",
  find: "a=b&c >512MiB",
  filter: 'category:activation "site:(no call stack)" >512MiB',
  color: "category",
  peak: 2,
  source: "43:C:/my run/gpt.py",
  mapColor: "change",
  theme: "dark",
};

test("a full state survives the way through a link", () => {
  expect(parseState(formatState(FULL))).toEqual(FULL);
});

test("a link keeps slashes, colons, commas and @ readable", () => {
  const link = formatState({ path: "a/b.pickle", sel: "0:0x1000@pre", markers: "1,2" });
  expect(link).toBe("#v=1&path=a/b.pickle&sel=0:0x1000@pre&markers=1,2");
});

test("numbers are rounded to a thousandth", () => {
  expect(formatState({ x0: 0.12345, x1: 2 / 3 })).toBe("#v=1&x0=0.123&x1=0.667");
});

test.each([
  ["view", "nowhere"],
  ["sheet", "landing"],
  ["part", "-1"],
  ["part", "1e3"],
  ["device", "1234567890"],
  ["axis", "weight"],
  ["pins", "rank3.pickle"],
  ["pins", "0:a|b"],
  ["cell", "train.py:88"],
  ["cell", "3:"],
  ["x0", "Infinity"],
  ["x1", "abc"],
  ["sel", "0:1000@3"],
  ["range", "event:3000:1000"],
  ["range", "weight:1:2"],
  ["at", "-2"],
  ["at", "1.5"],
  ["markers", "500,x"],
  ["rulers", "z:event:0:1:0:1"],
  ["rulers", "y:event:0:1:0"],
  ["capacity", "0"],
  ["capacity", "2000000"],
  ["color", "rainbow"],
  ["theme", "sepia"],
] as const)("a bad %s (%s) is left out alone", (name, value) => {
  const { [name]: _, ...others } = FULL;
  expect(validState({ ...FULL, [name]: value })).toEqual(others);
});

test("a state of another version is ignored as a whole", () => {
  expect(parseState("#v=2&view=flame")).toEqual({});
  expect(validState({ v: 2, view: "flame" })).toEqual({});
});

test("a state without a version, null fields and unknown fields are accepted", () => {
  const given = { view: "flame", path: null, sel: undefined, constructor: "x", url: "y" };
  expect(validState(given)).toEqual({ view: "flame" });
});

test("long texts are cut", () => {
  expect(validState({ find: "x".repeat(600) }).find).toHaveLength(500);
  expect(validState({ filter: "x".repeat(2100) }).filter).toHaveLength(2000);
  expect(validState({ whatIf: "x".repeat(2100) }).whatIf).toHaveLength(2000);
});

test("of long lists the first items are taken", () => {
  const many = <T>(one: T): T[] => new Array(100_000).fill(one);
  expect(markersOf(many(7).join(","))).toHaveLength(200);
  expect(rulersOf(many("x:event:1:2:3:4").join(","))).toHaveLength(200);
  expect(pinsOf(many("0:a.pickle").join("|"))).toHaveLength(200);
});

test("ranges, markers and rulers are read as numbers", () => {
  expect(rangeOf("time:-0.5:7")).toEqual({ axis: "time", x0: -0.5, x1: 7 });
  expect(rangeOf("time:1:1")).toBeUndefined();
  expect(markersOf("3,1")).toEqual([3, 1]);
  expect(markersOf("")).toEqual([]);
  expect(rulersOf("x:event:1:2:3:4")).toEqual([
    { along: "x", axis: "event", x0: 1, x1: 2, y0: 3, y1: 4 },
  ]);
});
