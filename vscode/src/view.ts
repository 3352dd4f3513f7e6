// The webview: the element, whose workers and files are on the machine of the extension.

import { register, TAG, type ViewState, type VramscopeEvents } from "vramscope-viewer";
import type { WorkerPort } from "../../web/viewer/dist/client/wasm.js";
import { followTheme } from "../../web/viewer/dist/host/theme-around.js";
import {
  type FromView,
  type FromWorker,
  INDEX,
  RUN,
  type ToView,
  type ToWorker,
} from "./channel.js";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): ViewState | undefined;
  setState(state: ViewState): void;
};

const host = acquireVsCodeApi();

/** A worker on the machine of the extension. */
class RemoteWorker implements WorkerPort {
  onmessage: WorkerPort["onmessage"] = null;
  onmessageerror: WorkerPort["onmessageerror"] = null;
  onerror: WorkerPort["onerror"] = null;
  readonly #number: number;

  constructor(number: number) {
    this.#number = number;
    host.postMessage({ kind: "start", worker: number });
  }

  postMessage(message: ToWorker): void {
    host.postMessage({ kind: "post", worker: this.#number, message });
  }

  terminate(): void {
    workers.delete(this.#number);
    host.postMessage({ kind: "end", worker: this.#number });
  }

  heard(data: FromWorker): void {
    this.onmessage?.call(this as unknown as Worker, new MessageEvent("message", { data }));
  }

  failed(message: string): void {
    this.onerror?.call(this as unknown as Worker, new ErrorEvent("error", { message }));
  }
}

const workers = new Map<number, RemoteWorker>();
const asked = new Map<number, (body: string | null) => void>();
let started = 0;
let questions = 0;

function start(): RemoteWorker {
  started += 1;
  const worker = new RemoteWorker(started);
  workers.set(started, worker);
  return worker;
}

addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  if (data.kind === "message") workers.get(data.worker)?.heard(data.message);
  else if (data.kind === "failed") workers.get(data.worker)?.failed(data.words);
  else if (data.kind === "fetched") {
    asked.get(data.id)?.(data.body);
    asked.delete(data.id);
  }
});

/** Answers requests for the run's addresses: the viewer fetches its index and source files. */
const ownFetch = globalThis.fetch;
const runFetch = async (...request: Parameters<typeof fetch>) => {
  const url = String(request[0]);
  if (!url.startsWith(RUN)) return ownFetch(...request);
  questions += 1;
  const id = questions;
  const answer = new Promise<string | null>((resolve) => asked.set(id, resolve));
  host.postMessage({ kind: "fetch", id, url });
  const body = await answer;
  return new Response(body, { status: body === null ? 404 : 200 });
};
globalThis.fetch = runFetch as typeof fetch;

register();
const viewer = document.createElement(TAG);
const { wasm = "" } = document.body.dataset;
const view = ownFetch(wasm).then((response) => response.arrayBuffer());
viewer.parts = { worker: start, wasm: { view, worker: null } };
viewer.setAttribute("mode", "embedded");
viewer.setAttribute("run", INDEX);
viewer.toggleAttribute("readonly", true);
followTheme(viewer, viewer);
viewer.addEventListener("vramscope-frame", (event) => {
  event.preventDefault();
  const { file, line } = (event as CustomEvent<VramscopeEvents["vramscope-frame"]>).detail;
  host.postMessage({ kind: "line", file, line });
});
document.body.append(viewer);
const state = host.getState();
if (state) viewer.setState(state);
viewer.addEventListener("vramscope-state", () => host.setState(viewer.getState()));
