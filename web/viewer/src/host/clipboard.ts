// Text to the clipboard, also where the page is served without https and `navigator.clipboard` is
// missing.

/** True when the text is there. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed or not there: the older way needs no permission, only a gesture.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", put, { once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", put);
  return done;
}

/**
 * Whether there is text that the browser itself would copy. Chromium keeps a shadow tree's
 * selection apart.
 */
export function hasSelectedText(root: Node): boolean {
  const own = (root as Partial<Pick<Document, "getSelection">>).getSelection?.();
  return [own, document.getSelection()].some((selection) => (selection?.toString() ?? "") !== "");
}
