import { expect, test } from "vitest";
import { GIB } from "../view-selection.js";
import { bytesOf, deviceOf } from "./capacity.js";

test.each([
  ["80", 80],
  [".5 gb", 0.5],
  ["79.1 GiB", 79.1],
  ["81559MiB", 81559 / 1024],
  ["1t", 1024],
  ["A10G 24 GB", 22.1],
  ["h100", 79.1],
])("%s is an amount", (text, gib) => expect(bytesOf(text)).toBeCloseTo(gib * GIB, -1));

test.each(["much", "-1", "0", "99999999 TiB", "1.2.3", "80 x"])("%s is no amount", (text) =>
  expect(bytesOf(text)).toBeUndefined(),
);

test("an empty text is no capacity", () => expect(bytesOf("  ")).toBeNull());

test.each([
  ["H100", "H100 80 GB"],
  ["rtx 4090", "RTX 4090 24 GB"],
  ["a100 80", "A100 80 GB"],
  ["A10", undefined],
  ["80", undefined],
])("the first words %s name %s", (text, name) => expect(deviceOf(text)?.[0]).toBe(name));
