import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import { Filters, partsOf, termsOf, termsText } from "./filters.js";

test("terms are set, added once, removed and cleared", () => {
  const filters = new Filters(signal(""));
  filters.set(["category:activation"]);
  filters.add("step:3", "category:activation", " ");
  expect(filters.terms.value).toEqual(["category:activation", "step:3"]);
  filters.remove("category:activation");
  expect(filters.terms.value).toEqual(["step:3"]);
  filters.set(["a", "b"]);
  expect(filters.terms.value).toEqual(["a", "b"]);
  filters.clear();
  expect(filters.terms.value).toEqual([]);
});

test("equal terms do not notify", () => {
  const filters = new Filters(signal(""));
  filters.set(["a"]);
  const before = filters.terms.value;
  filters.set(["a", "a"]);
  expect(filters.terms.value).toBe(before);
});

test("the text has the terms, then the search", () => {
  const search = signal("");
  const filters = new Filters(search);
  expect(filters.text.value).toBe("");
  filters.set(["site:gpt.py:43 forward", ">512MiB"]);
  expect(filters.text.value).toBe('"site:gpt.py:43 forward" >512MiB');
  search.value = "  attention ";
  expect(filters.text.value).toBe('"site:gpt.py:43 forward" >512MiB attention');
  filters.clear();
  expect(filters.text.value).toBe("attention");
});

test("a text of terms is read back", () => {
  for (const terms of [
    [],
    ["attention"],
    ["site:(before recording)", "size:>512 MiB"],
    ["via:adam.py:183 _init_group", "lifetime:>1.5 s", "0x7f00", "live@peak"],
  ])
    expect(termsOf(termsText(terms))).toEqual(terms);
  expect(termsOf('  a site:"b c"  "unclosed d')).toEqual(["a", "site:b c", "unclosed d"]);
  const filters = new Filters(signal(""));
  filters.set(['say "it"']);
  expect(filters.terms.value).toEqual(["say it"]);
});

test("only known keys are split from the value", () => {
  expect(partsOf("site:gpt.py:43 forward")).toEqual({ key: "site", value: "gpt.py:43 forward" });
  expect(partsOf("Step:3")).toEqual({ key: "step", value: "3" });
  for (const term of ["gpt.py:43", "at::mul", ">512MiB", "step:"])
    expect(partsOf(term)).toEqual({ key: "", value: term });
});
