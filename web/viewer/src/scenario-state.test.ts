import { expect, test } from "vitest";
import { AS_RECORDED, scenarioOf, scenarioText } from "./scenario-state.js";

test("a question survives the way through a link", () => {
  const spec = {
    expandableSegments: false,
    maxSplitSizeMb: 0,
    roundupPower2Divisions: 4,
    deviceMemory: "1,5 GiB 100%",
    tokens: 0.7,
    parts: [
      { what: "optimizer_state", factor: 0.25 },
      { what: "a,b/train.py:12", factor: 0 },
    ],
  };
  const text = scenarioText(spec);
  expect(text).toBe(
    "expandable_segments:False,max_split_size_mb:0,roundup_power2_divisions:4," +
      "device_memory:1%2C5 GiB 100%25,tokens:0.7,optimizer_state:0.25,a%2Cb/train.py:12:0",
  );
  expect(scenarioOf(text)).toEqual(spec);
});

test("the recording as it is has no text", () => {
  expect(scenarioText(AS_RECORDED)).toBe("");
  expect(scenarioOf("")).toEqual(AS_RECORDED);
});

test.each([
  "tokens",
  "tokens:0",
  "tokens:-1",
  "tokens:many",
  "max_split_size_mb:1e9",
  "roundup_power2_divisions:",
  "optimizer_state:NaN",
  ":0.5",
  "device_memory:%E0%A4%A",
  "expandable_segments:True,,tokens:2",
])("%s is no question", (text) => {
  expect(scenarioOf(text)).toBeUndefined();
});
