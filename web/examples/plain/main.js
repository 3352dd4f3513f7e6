import { openViewer } from "./memstrata/dist/client/standalone.js";

const said = document.querySelector("output");
// The viewer's events bubble.
document.addEventListener("memstrata-loaded", ({ detail: { path, remaining } }) => {
  said.value = `${path} is open, ${remaining} to come`;
});

const viewer = await openViewer(document.querySelector("main"), { view: "timeline" });
document.querySelector("input").addEventListener("change", ({ target }) => viewer.load(target.files));
document.querySelector("button").addEventListener("click", () => viewer.remove());
