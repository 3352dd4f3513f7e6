// The page about recording: a button that copies, on every piece of code. Without a clipboard there
// is none.

const SAID_MS = 1500;

function copyButton(code: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = "Copy";
  let told = 0;
  const say = (text: string) => {
    clearTimeout(told);
    button.textContent = text;
    told = window.setTimeout(() => {
      button.textContent = "Copy";
    }, SAID_MS);
  };
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(code).then(
      () => say("Copied"),
      () => say("Not allowed"),
    );
  });
  return button;
}

for (const pre of document.querySelectorAll("pre")) {
  // It scrolls, also by the keyboard.
  pre.tabIndex = 0;
  if ("clipboard" in navigator) pre.after(copyButton(pre.textContent));
}
