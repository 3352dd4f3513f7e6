// Small controls of the toolbars.

import type { Signal } from "@preact/signals";
import { Icon } from "../ui/icons.js";

interface ChoiceProperties<T extends string> {
  label: string;
  value: Signal<T>;
  options: readonly (readonly [T, string])[];
  testid?: string;
}

export function Choice<T extends string>({ label, value, options, testid }: ChoiceProperties<T>) {
  return (
    <label class="field">
      <span>{label}</span>
      <span class="select small">
        <select
          data-testid={testid}
          value={value.value}
          onChange={(event) => {
            const chosen = options.find(([option]) => option === event.currentTarget.value);
            if (chosen) value.value = chosen[0];
          }}
        >
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </span>
    </label>
  );
}

interface ToggleProperties {
  label: string;
  title?: string;
  value: Signal<boolean>;
  changed?: () => void;
}

export function Toggle({ label, title, value, changed }: ToggleProperties) {
  return (
    <button
      type="button"
      class="toggle"
      aria-pressed={value.value}
      title={title}
      onClick={() => {
        value.value = !value.peek();
        changed?.();
      }}
    >
      {label}
    </button>
  );
}
