import { openViewer } from "vramscope-viewer";

const said = document.querySelector("output");
// The viewer's events bubble.
document.addEventListener("vramscope-loaded", ({ detail: { path, remaining } }) => {
  said.value = `${path} is open, ${remaining} to come`;
});

const opening = openViewer(document.querySelector("main"), { view: "timeline" });
// Whatever is done before the viewer is there waits for it.
document
  .querySelector("input")
  .addEventListener("change", async ({ target }) => (await opening).load(target.files));
document.querySelector("button").addEventListener("click", async () => (await opening).remove());
