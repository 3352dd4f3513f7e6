import { beforeEach, expect, test, vi } from "vitest";
import type { VramscopeViewer } from "../element.js";
import { linkTo, openAddresses } from "./addresses.js";

let load: ReturnType<typeof vi.fn>;
let page: EventTarget;
let location: { hash: string };

beforeEach(() => {
  load = vi.fn(async () => undefined);
  page = new EventTarget();
  location = { hash: "" };
  vi.stubGlobal("window", page);
  vi.stubGlobal("location", location);
});

const start = () => openAddresses({ load } as unknown as VramscopeViewer);

function go(hash: string): void {
  location.hash = hash;
  page.dispatchEvent(new Event("hashchange"));
}

test("opens all addresses of the fragment, in order and decoded", () => {
  location.hash = "#view=flame&url=https://a.org/r0.pickle%3Fx%3D1&url=runs/r1.pickle";
  start();
  expect(load.mock.calls).toEqual([[["https://a.org/r0.pickle?x=1", "runs/r1.pickle"]]]);
});

test("opens nothing while the fragment names nothing", () => {
  location.hash = "#v=1&path=a.pickle";
  start();
  expect(load).not.toHaveBeenCalled();
});

test("opens again only when the addresses change", () => {
  location.hash = "#url=a";
  start();
  go("#url=a&view=flame");
  go("#view=flame");
  expect(load).toHaveBeenCalledTimes(1);
  go("#url=b");
  expect(load).toHaveBeenLastCalledWith(["b"]);
});

test("stops following the address when it is ended", () => {
  start()();
  go("#url=a");
  expect(load).not.toHaveBeenCalled();
});

test("a pasted text is a link if it has nothing but addresses, which the page reads back", () => {
  const text = "https://a.org/r0.pickle?x=1&y=2\n http://localhost:8000/r1.pickle ";
  const link = linkTo("./open/", text);
  expect(link?.hosts).toBe("a.org, localhost:8000");
  expect(link?.href).toMatch(/^\.\/open\/#url=/);
  location.hash = link?.href.slice("./open/".length) ?? "";
  start();
  expect(load.mock.calls).toEqual([
    [["https://a.org/r0.pickle?x=1&y=2", "http://localhost:8000/r1.pickle"]],
  ]);
});

test("a message, a path, a script and an empty text are no link", () => {
  for (const text of [
    "CUDA out of memory, see https://pytorch.org/docs",
    "runs/rank0.pickle",
    "javascript:alert(1)",
    "https://",
    " ",
  ])
    expect(linkTo("./open/", text)).toBeNull();
});
