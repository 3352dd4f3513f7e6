// A case of the gallery: its recording in the viewer.

import { register } from "vramscope-viewer";
import workerAddress from "vramscope-viewer/worker.js?worker&url";
import { confined } from "./confined.js";
import "./record.js";

const viewer = document.querySelector("vramscope-viewer");
viewer?.setAttribute("worker-url", confined(workerAddress));
register();
