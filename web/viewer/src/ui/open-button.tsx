// A file picker that looks like a button. The input itself has the focus, so that keys and
// assistive technology use a real control.

import type { ComponentChildren } from "preact";

interface Properties {
  name: string;
  class: string;
  folder?: boolean;
  testid?: string;
  open(files: Iterable<File>): void;
  children: ComponentChildren;
}

export function OpenButton({
  name,
  class: look,
  folder = false,
  testid,
  open,
  children,
}: Properties) {
  const changed = (event: Event & { currentTarget: HTMLInputElement }) => {
    const input = event.currentTarget;
    if (input.files?.length) open([...input.files]);
    // Lets the same file be picked again.
    input.value = "";
  };
  return (
    <label class={`button ${look}`} title={name}>
      <input
        ref={(input) => {
          if (input) input.webkitdirectory = folder;
        }}
        class="visually-hidden"
        type="file"
        multiple
        aria-label={name}
        data-testid={testid}
        onChange={changed}
      />
      {children}
    </label>
  );
}
