import "vramscope-viewer/element";
import type { VramscopeEvents } from "vramscope-viewer";

const viewer = document.querySelector("vramscope-viewer");
const said = document.querySelector("output");

document.querySelector("input")?.addEventListener("change", ({ currentTarget }) => {
  const { files } = currentTarget as HTMLInputElement;
  void viewer?.load(files ?? []);
});
document.querySelector("button")?.addEventListener("click", () => viewer?.remove());
// The viewer's events bubble.
document.addEventListener("vramscope-loaded", (event) => {
  const { path, remaining } = (event as CustomEvent<VramscopeEvents["vramscope-loaded"]>).detail;
  if (said) said.value = `${path} is open, ${remaining} to come`;
});
