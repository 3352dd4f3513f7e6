import { beforeEach, expect, test, vi } from "vitest";
import { isTrusted, trust } from "./consent.js";

let stored: Map<string, string>;

beforeEach(() => {
  stored = new Map();
  vi.stubGlobal("location", { origin: "https://viewer.org" });
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  });
});

test.each([
  "https://viewer.org",
  "http://localhost:8888",
  "http://127.0.0.1:1234",
  "http://[::1]:80",
])("%s may show files without asking", (origin) => {
  expect(isTrusted(origin)).toBe(true);
});

test.each([
  "null",
  "",
  "https://viewer.org.evil.org",
  "https://localhost.evil.org",
  "http://viewer.org",
  "https://viewer.org:8443",
  "http://127.0.0.1.evil.org",
])("%s has to be asked about", (origin) => {
  expect(isTrusted(origin)).toBe(false);
});

test("an origin that is trusted always is remembered, and no other one", () => {
  trust("https://a.org");
  trust("https://b.org");
  expect(isTrusted("https://a.org")).toBe(true);
  expect(isTrusted("https://b.org")).toBe(true);
  expect(isTrusted("https://c.org")).toBe(false);
});

test.each(["not json", '{"a":1}', '"https://a.org"', '[1,{"x":2}]'])(
  "a stored list that is damaged (%s) trusts nobody and can be replaced",
  (text) => {
    stored.set("vramscope-trusted", text);
    expect(isTrusted("https://a.org")).toBe(false);
    trust("https://a.org");
    expect(isTrusted("https://a.org")).toBe(true);
  },
);

test("without storage nothing is remembered and nothing throws", () => {
  const refuse = () => {
    throw new DOMException("denied", "SecurityError");
  };
  vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse });
  expect(() => trust("https://a.org")).not.toThrow();
  expect(isTrusted("https://a.org")).toBe(false);
});
