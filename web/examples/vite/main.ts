import "memstrata-viewer/element";
import type { MemstrataEvents } from "memstrata-viewer";

const viewer = document.querySelector("memstrata-viewer");
const said = document.querySelector("output");

document.querySelector("input")?.addEventListener("change", ({ currentTarget }) => {
  const { files } = currentTarget as HTMLInputElement;
  void viewer?.load(files ?? []);
});
document.querySelector("button")?.addEventListener("click", () => viewer?.remove());
// The viewer's events bubble.
document.addEventListener("memstrata-loaded", (event) => {
  const { path, remaining } = (event as CustomEvent<MemstrataEvents["memstrata-loaded"]>).detail;
  if (said) said.value = `${path} is open, ${remaining} to come`;
});
