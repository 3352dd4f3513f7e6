import { openViewer } from "vramscope-viewer";

const output = document.querySelector("output");
// Events of the viewer bubble up to the document.
document.addEventListener("vramscope-loaded", ({ detail: { path, remaining } }) => {
  output.value = `Loaded ${path}, ${remaining} remaining`;
});

const opening = openViewer(document.querySelector("main"), { view: "timeline" });
// Actions wait until the viewer is open.
document
  .querySelector("input")
  .addEventListener("change", async ({ target }) => (await opening).load(target.files));
document.querySelector("button").addEventListener("click", async () => (await opening).remove());
