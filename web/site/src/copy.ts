// A copy button for every code block, if the browser has a clipboard.

const FEEDBACK_MS = 1500;

function copyButton(code: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = "Copy";
  let timer = 0;
  const show = (text: string) => {
    clearTimeout(timer);
    button.textContent = text;
    timer = window.setTimeout(() => {
      button.textContent = "Copy";
    }, FEEDBACK_MS);
  };
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(code).then(
      () => show("Copied"),
      () => show("Access denied"),
    );
  });
  return button;
}

for (const pre of document.querySelectorAll("pre")) {
  // Makes it scroll with the keyboard.
  pre.tabIndex = 0;
  if ("clipboard" in navigator) pre.after(copyButton(pre.textContent));
}
