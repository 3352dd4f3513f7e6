// Who may show files here, and the question about everybody else.

import type { Theme } from "../view-state.js";

const KEY = "vramscope-trusted";
const NAMED = 3;

/** Where nothing may be stored, nothing is remembered. */
function remembered(): string[] {
  try {
    const known: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(known) ? known.filter((origin) => typeof origin === "string") : [];
  } catch {
    return [];
  }
}

/**
 * This origin, any server of this machine, and whom somebody has said always to trust. "null" is
 * nobody's origin.
 */
export function isTrusted(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(new URL(origin).hostname);
  return origin === location.origin || local || remembered().includes(origin);
}

export function trust(origin: string): void {
  try {
    localStorage.setItem(KEY, JSON.stringify([...remembered(), origin]));
  } catch {
    // It is asked again next time.
  }
}

const STYLE = `
:host { color-scheme: light dark; }
dialog {
  max-width: 480px;
  padding: 18px 20px;
  border: 1px solid color-mix(in srgb, CanvasText 25%, Canvas);
  border-radius: 8px;
  background: Canvas;
  color: CanvasText;
  font: 400 14px / 1.45 system-ui, sans-serif;
}
dialog::backdrop { background: rgb(0 0 0 / 45%); }
p { margin: 0 0 10px; overflow-wrap: anywhere; }
form { display: flex; justify-content: flex-end; gap: 8px; }
button { padding: 4px 14px; font: inherit; }
`;

function line(text: string): HTMLParagraphElement {
  const element = document.createElement("p");
  element.textContent = text;
  return element;
}

/** Asks whoever sits here. An origin without a name cannot be remembered. */
export function ask(
  origin: string,
  names: readonly string[],
  theme: Theme = "auto",
): Promise<"show" | "always" | "no"> {
  const host = document.createElement("div");
  if (theme !== "auto") host.style.colorScheme = theme;
  const root = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(STYLE);
  root.adoptedStyleSheets = [style];
  // The keys of what is below are not for the question.
  host.addEventListener("keydown", (event) => event.stopPropagation());

  const dialog = document.createElement("dialog");
  const form = document.createElement("form");
  form.method = "dialog";
  const who = origin === "null" ? "A page that does not say where it is from" : origin;
  const question = line(
    `${who} wants to show ${names.length === 1 ? "a file" : `${names.length} files`} here.`,
  );
  question.id = "question";
  dialog.setAttribute("aria-labelledby", question.id);
  const button = (value: string, text: string) => {
    const element = document.createElement("button");
    element.value = value;
    element.textContent = text;
    form.append(element);
  };
  button("no", "No");
  if (origin !== "null") button("always", "Always");
  button("show", "Show");
  const listed = [...names.slice(0, NAMED), ...(names.length > NAMED ? ["others"] : [])].join(", ");
  dialog.append(
    question,
    line(listed),
    line("It is told whether they could be read, and nothing else."),
    form,
  );
  root.append(dialog);
  document.body.append(host);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      host.remove();
      const { returnValue } = dialog;
      resolve(returnValue === "show" || returnValue === "always" ? returnValue : "no");
    });
  });
}
