import { expect, test } from "vitest";
import { type CodeFile, filesOf, isCode, lineOf, mayBeIn } from "./code-files.js";

const files = (...paths: string[]): CodeFile[] =>
  paths.map((path) => ({ path, file: new File([], path) }));
const found = (recorded: string, all: CodeFile[]) => filesOf(recorded, all).map(({ path }) => path);

test("the longest common end decides which file a recorded path names", () => {
  const all = files("src/gpt.py", "src/model/gpt.py", "src/model/utils.py");
  expect(found("/train/gpt.py", all)).toEqual(["src/gpt.py"]);
  expect(found("/train/model/gpt.py", all)).toEqual(["src/model/gpt.py"]);
  expect(found("C:\\train\\model\\gpt.py", all)).toEqual(["src/model/gpt.py"]);
  // The name alone is not enough below the folder, or in a package.
  expect(found("/train/other/utils.py", all)).toEqual([]);
  expect(found("/venv/site-packages/gpt/gpt.py", all)).toEqual([]);
  expect(found("/venv/site-packages/model/gpt.py", all)).toEqual(["src/model/gpt.py"]);
  expect(found("/train/gpt.py", files("gpt.py"))).toEqual(["gpt.py"]);
});

test("files that fit equally are all named", () => {
  const all = files("a/model/gpt.py", "b/model/gpt.py");
  expect(found("/train/model/gpt.py", all)).toHaveLength(2);
});

test("source files are told from others", () => {
  expect(["a/b.py", "k.cu", "x.hpp"].every(isCode)).toBe(true);
  const others = ["a/.venv/b.py", "a/site-packages/b.py", "a/rank0.pickle", "a/py"];
  expect(others.some(isCode)).toBe(false);
});

const TEXT = `class Block:
    def __init__(self):
        self.a = 1

    async def forward(self, x):
        def inner(y):
            return y
        return inner(x)

def forward_all(x):
    return [x]
`.split("\n");

test("a line is in the function that is open", () => {
  for (const [line, name, isIn] of [
    [3, "__init__", true],
    [3, "forward", false],
    [7, "inner", true],
    [8, "forward", true],
    [11, "forward", false],
    [11, "forward_all", true],
    [11, "<listcomp>", true],
    [3, "Block", true],
  ] as const)
    expect(mayBeIn(TEXT, line, name), `${line} ${name}`).toBe(isIn);
});

test("a wrong line is never shown as the one that ran", () => {
  const of = (line: number, recorded: string, isOld = false) =>
    lineOf(line, ["__init__"], recorded, TEXT, isOld);
  expect(of(3, "")).toEqual({ text: "        self.a = 1", state: "unsure" });
  expect(of(3, "", true).state).toBe("found");
  expect(of(3, "self.a = 1").state).toBe("recorded");
  expect(of(3, "self.b = 1")).toEqual({ text: "self.b = 1", state: "differs" });
  expect(of(99, "self.b = 1").state).toBe("differs");
  expect(of(11, "")).toEqual({ text: "", state: "missing" });
  expect(of(99, "")).toEqual({ text: "", state: "missing" });
  expect(lineOf(3, ["f"], "", null, false)).toEqual({ text: "", state: "unknown" });
  expect(lineOf(3, ["f"], "g()", null, false)).toEqual({ text: "g()", state: "recorded" });
});
