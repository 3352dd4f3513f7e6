// Which origins may show files here, and the dialog that asks about other origins.

import type { Theme } from "../view-state.js";

const KEY = "vramscope-trusted";
const MAX_NAMES = 3;

/** Origins that are always trusted; none when storage is blocked. */
function remembered(): string[] {
  try {
    const known: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(known) ? known.filter((origin) => typeof origin === "string") : [];
  } catch {
    return [];
  }
}

/** True for this origin, servers on this machine, and origins that were trusted for good. */
export function isTrusted(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(new URL(origin).hostname);
  return origin === location.origin || local || remembered().includes(origin);
}

/** Trusts an origin for good. */
export function trust(origin: string): void {
  try {
    localStorage.setItem(KEY, JSON.stringify([...remembered(), origin]));
  } catch {
    // Storage is blocked: the dialog asks again next time.
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

/** Asks whether an origin may show files. The origin "null" cannot be trusted for good. */
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
  // Keys in the dialog must not reach the viewer's shortcuts.
  host.addEventListener("keydown", (event) => event.stopPropagation());

  const dialog = document.createElement("dialog");
  const form = document.createElement("form");
  form.method = "dialog";
  const who = origin === "null" ? "A page of unknown origin" : origin;
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
  const listed = [
    ...names.slice(0, MAX_NAMES),
    ...(names.length > MAX_NAMES ? ["others"] : []),
  ].join(", ");
  dialog.append(
    question,
    line(listed),
    line("It learns only whether the files could be read."),
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
