import { expect, test } from "vitest";
import { makeVisible, visible } from "./visible.js";

test("marks of direction and controls are shown, other text stays", () => {
  expect(visible("\u202ekcip.exe")).toBe("\\u{202e}kcip.exe");
  expect(visible("a\u2066b\u001b[2Jc\u009bd")).toBe("a\\u{2066}b\\u{1b}[2Jc\\u{9b}d");
  for (const plain of ["", "train.py:31 step", "größe 模型", "two\nlines\tand tabs"])
    expect(visible(plain)).toBe(plain);
});

test("all texts of a message are made visible, and numbers stay", () => {
  const positions = new Float32Array([1, 2]);
  const message = {
    rows: [{ site: "\u202ea", bytes: 7, none: null }, "b\u200f"],
    positions,
    plain: "c",
  };
  expect(makeVisible(message)).toEqual({
    rows: [{ site: "\\u{202e}a", bytes: 7, none: null }, "b\\u{200f}"],
    positions,
    plain: "c",
  });
  expect(message.positions).toBe(positions);
});
