// Text of files on the page. Marks that change the direction of text could show a name as another:
// `kcip.exe` with a mark in front reads `exe.pick`. So marks and controls are shown as escapes, as
// the program shows them on a terminal.

/** Controls but line breaks and tabs, line separators, and marks of direction. */
const ACTING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what it looks for
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text, with acting characters as escapes: `\u{202e}`. */
export const visible = (text: string): string =>
  text.replace(ACTING, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);

/** Makes all texts in a received message visible, in place. Buffers of numbers are left alone. */
export function makeVisible<T>(message: T): T {
  if (typeof message === "string") return visible(message) as T & string;
  if (typeof message !== "object" || message === null || ArrayBuffer.isView(message))
    return message;
  const fields = message as Record<string, unknown>;
  for (const key in fields) {
    const value = fields[key];
    if (typeof value === "string" ? value.search(ACTING) >= 0 : typeof value === "object")
      fields[key] = makeVisible(value);
  }
  return message;
}
