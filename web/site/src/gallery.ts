// A page of the gallery: registers the element, and opens its place with the state of the page.

import { register } from "vramscope-viewer";
import workerAddress from "vramscope-viewer/worker.js?worker&url";
import "./copy.js";
import { confined } from "./confined.js";

const viewer = document.querySelector("vramscope-viewer");
if (viewer) {
  viewer.setAttribute("worker-url", confined(workerAddress));
  register();
  const state = new URLSearchParams(viewer.getAttribute("data-state") ?? "");
  if (state.size > 0) viewer.setState(Object.fromEntries(state));
}
