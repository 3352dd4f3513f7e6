import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { VramscopeViewer } from "../element.js";
import type { ViewState } from "../view-state.js";
import { bindAddress } from "./url-state.js";

class FakeViewer extends EventTarget {
  readonly setState = vi.fn<(state: ViewState) => void>();
  readonly setAttribute = vi.fn<(name: string, value: string) => void>();

  tell(detail: ViewState): void {
    this.dispatchEvent(new CustomEvent("vramscope-state", { detail }));
  }
}

let page: EventTarget;
let location: { hash: string };
let viewer: FakeViewer;
let replaceState: ReturnType<typeof vi.fn<(state: unknown, title: string, url: string) => void>>;

beforeEach(() => {
  vi.useFakeTimers();
  page = new EventTarget();
  location = { hash: "" };
  viewer = new FakeViewer();
  replaceState = vi.fn((_state, _title, url: string) => {
    location.hash = url;
  });
  vi.stubGlobal("window", page);
  vi.stubGlobal("location", location);
  vi.stubGlobal("history", { state: null, replaceState });
});

afterEach(() => {
  vi.useRealTimers();
});

const bind = () => bindAddress(viewer as unknown as VramscopeViewer);

/** The visitor follows a link to another fragment. */
function go(hash: string): void {
  location.hash = hash;
  const event = Object.assign(new Event("hashchange"), { newURL: `https://viewer.org/${hash}` });
  page.dispatchEvent(event);
}

test("applies the state and the mode of the address at the start", () => {
  location.hash = "#v=1&path=a.pickle&view=flame&mode=embedded";
  bind();
  expect(viewer.setState).toHaveBeenCalledWith({ path: "a.pickle", view: "flame" });
  expect(viewer.setAttribute).toHaveBeenCalledWith("mode", "embedded");
});

test("writes the last of several states, once they have come to rest", () => {
  bind();
  viewer.tell({ path: "a.pickle", x0: 1 });
  viewer.tell({ path: "a.pickle", x0: 2 });
  expect(replaceState).not.toHaveBeenCalled();
  vi.runAllTimers();
  expect(replaceState).toHaveBeenCalledOnce();
  expect(location.hash).toBe("#v=1&path=a.pickle&x0=2");
});

test("keeps the addresses and the mode of the fragment, and nothing else", () => {
  location.hash = "#url=https://a.org/x&url=y&mode=embedded&other=1&view=flame";
  bind();
  viewer.tell({ path: "x" });
  vi.runAllTimers();
  const written = new URLSearchParams(location.hash.slice(1));
  expect([...written]).toEqual([
    ["v", "1"],
    ["path", "x"],
    ["url", "https://a.org/x"],
    ["url", "y"],
    ["mode", "embedded"],
  ]);
});

test("the landing page does not overwrite a link that waits for its files", () => {
  location.hash = "#v=1&path=a.pickle&view=flame";
  bind();
  viewer.tell({ view: "timeline" });
  vi.runAllTimers();
  expect(replaceState).not.toHaveBeenCalled();
});

test("a link that is followed wins over a state that has not been written", () => {
  bind();
  viewer.tell({ path: "a.pickle", view: "timeline" });
  go("#v=1&path=a.pickle&view=flame");
  vi.runAllTimers();
  expect(viewer.setState).toHaveBeenLastCalledWith({ path: "a.pickle", view: "flame" });
  expect(replaceState).not.toHaveBeenCalled();
});

test("ends both ways", () => {
  const end = bind();
  viewer.tell({ path: "a.pickle" });
  end();
  go("#v=1&view=flame");
  viewer.tell({ path: "b.pickle" });
  vi.runAllTimers();
  expect(viewer.setState).toHaveBeenCalledTimes(1);
  expect(replaceState).not.toHaveBeenCalled();
});
