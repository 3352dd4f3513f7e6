// Copies text. Without https, where `navigator.clipboard` is missing, it falls back to a copy
// event.

/** Copies a text. False when the browser refuses. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The older way needs no permission, only a user gesture.
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

/** Whether text is selected. Chromium keeps the selection of a shadow tree separate. */
export function hasSelectedText(root: Node): boolean {
  const own = (root as Partial<Pick<Document, "getSelection">>).getSelection?.();
  return [own, document.getSelection()].some((selection) => (selection?.toString() ?? "") !== "");
}
