import "vramscope-viewer/element";
import type { VramscopeEvents } from "vramscope-viewer";

const viewer = document.querySelector("vramscope-viewer");
const output = document.querySelector("output");

document.querySelector("input")?.addEventListener("change", ({ currentTarget }) => {
  const { files } = currentTarget as HTMLInputElement;
  void viewer?.load(files ?? []);
});
document.querySelector("button")?.addEventListener("click", () => viewer?.remove());
// Events of the viewer bubble up to the document.
document.addEventListener("vramscope-loaded", (event) => {
  const { path, remaining } = (event as CustomEvent<VramscopeEvents["vramscope-loaded"]>).detail;
  if (output) output.value = `Loaded ${path}, ${remaining} remaining`;
});
