// What does not fit on the page: cut or overlapping controls, cut texts, horizontal overflow.

import type { Page } from "@playwright/test";

/** Describes everything in the viewer that does not fit at the window's size. */
export function misfits(page: Page): Promise<string[]> {
  // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: the page gets it as one function
  return page.evaluate(() => {
    const root = document.querySelector("vramscope-viewer")?.shadowRoot;
    const app = root?.querySelector<HTMLElement>(".app");
    if (!root || !app) return ["the viewer is missing"];
    const wrong: string[] = [];
    const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    if (over > 0) wrong.push(`the page is ${over} px too wide`);
    if (app.scrollWidth > app.clientWidth + 1)
      wrong.push(`the viewer is ${app.scrollWidth - app.clientWidth} px too wide`);

    // Marks and names over a plot, tracks and the minimap are data: they are cut by design.
    const DATA = ".overlay, .axis, .tracks, .minimap, .visually-hidden, .middle-cut, .rows-bar";
    const nameOf = (element: Element) =>
      [
        element.closest("[data-testid^=view-]")?.getAttribute("data-testid") ?? "",
        element.tagName.toLowerCase(),
        element.getAttribute("aria-label") ?? element.textContent?.trim().slice(0, 40) ?? "",
        element.className,
      ].join(" ");
    const isShown = (element: Element) => {
      const { width, height } = element.getBoundingClientRect();
      // A folded part has a box, too.
      return width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true });
    };
    const all = [...root.querySelectorAll<HTMLElement>("*")].filter(
      (element) => isShown(element) && element.closest(DATA) === null,
    );

    const controls = all.filter((element) =>
      element.matches("button, select, input, a[href], [role=tab], label.button"),
    );
    /** A list, a table or a text that scrolls along x by design says so by its role. */
    const SCROLLS = "[role=listbox], [role=table], [role=grid], [role=treegrid], pre";
    function* ancestorsOf(element: Element) {
      for (let around = element.parentElement; around; around = around.parentElement) yield around;
    }
    /** What is seen of an element: the parts that scrolled out of sight are elsewhere. */
    const seenOf = (element: Element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect();
      const box = { left, top, right, bottom };
      for (const around of ancestorsOf(element)) {
        if (getComputedStyle(around).overflowX === "visible") continue;
        const clip = around.getBoundingClientRect();
        box.left = Math.max(box.left, clip.left);
        box.top = Math.max(box.top, clip.top);
        box.right = Math.min(box.right, clip.right);
        box.bottom = Math.min(box.bottom, clip.bottom);
      }
      return box;
    };
    for (const control of controls) {
      if (control.closest(SCROLLS) !== null) continue;
      const box = control.getBoundingClientRect();
      for (const around of ancestorsOf(control)) {
        if (getComputedStyle(around).overflowX === "visible") continue;
        const clip = around.getBoundingClientRect();
        const cut = Math.max(clip.left - box.left, box.right - clip.right);
        if (cut > 1.5) wrong.push(`cut by ${cut.toFixed(1)} px: ${nameOf(control)}`);
      }
      if (box.right > innerWidth + 1 || box.left < -1) wrong.push(`outside: ${nameOf(control)}`);
    }
    // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: a loop over pairs
    controls.forEach((one, index) => {
      const a = seenOf(one);
      for (const other of controls.slice(index + 1)) {
        if (one.contains(other) || other.contains(one)) continue;
        // An open menu is meant to cover.
        if (one.closest(".menu-panel") !== other.closest(".menu-panel")) continue;
        // What scrolls passes below the bar of places, which stays at the bottom of a phone.
        if (one.closest(".place-bar") !== other.closest(".place-bar")) continue;
        const b = seenOf(other);
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 2) wrong.push(`overlap: ${nameOf(one)} and ${nameOf(other)}`);
      }
    });

    for (const element of all) {
      if (element.childElementCount > 0 || (element.textContent ?? "").trim() === "") continue;
      const { overflowX, textOverflow, display } = getComputedStyle(element);
      if (element.tagName === "OPTION") continue;
      if (element.closest(SCROLLS) === null && element.closest("svg") === null) {
        const { left, right } = element.getBoundingClientRect();
        const ends = seenOf(element);
        // An ancestor with an ellipsis shows that there is more.
        const isMarked = [...ancestorsOf(element)].some(
          (around) => getComputedStyle(around).textOverflow === "ellipsis",
        );
        const cut = Math.max(ends.left - left, right - ends.right);
        const isInSight = ends.right > ends.left && ends.bottom > ends.top;
        if (cut > 2 && isInSight && !isMarked) wrong.push(`text cut: ${nameOf(element)}`);
      }
      if (display === "inline") continue;
      if (overflowX === "visible" || overflowX === "auto" || overflowX === "scroll") continue;
      if (textOverflow === "ellipsis") continue;
      if (element.scrollWidth > element.clientWidth + 1) wrong.push(`text: ${nameOf(element)}`);
    }
    return [...new Set(wrong)];
  });
}
