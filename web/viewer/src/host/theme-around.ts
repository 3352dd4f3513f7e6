// The theme of what is around a viewer: a notebook, or VS Code.

import type { VramscopeViewer } from "../element.js";
import type { Theme } from "../view-state.js";

/** The theme of what is around an element; `auto` if it does not say. */
function themeAround(element: Element): Theme {
  const { body } = document;
  const jupyter = body.getAttribute("data-jp-theme-light");
  if (jupyter !== null) return jupyter === "true" ? "light" : "dark";
  const { classList } = body;
  if (classList.contains("vscode-light") || classList.contains("vscode-high-contrast-light"))
    return "light";
  if (classList.contains("vscode-dark") || classList.contains("vscode-high-contrast"))
    return "dark";
  const scheme = getComputedStyle(element).colorScheme;
  return scheme === "dark" || scheme === "light" ? scheme : "auto";
}

/** Keeps the viewer's theme that of what is around it. Returns a function that stops it. */
export function followTheme(viewer: VramscopeViewer, element: Element): () => void {
  const follow = () => viewer.setAttribute("theme", themeAround(element));
  follow();
  const observer = new MutationObserver(follow);
  for (const node of [document.body, document.documentElement])
    observer.observe(node, { attributeFilter: ["data-jp-theme-light", "class", "style"] });
  return () => observer.disconnect();
}
