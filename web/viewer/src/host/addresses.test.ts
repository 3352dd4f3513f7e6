import { beforeEach, expect, test, vi } from "vitest";
import type { VramscopeViewer } from "../element.js";
import { openAddresses } from "./addresses.js";

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
