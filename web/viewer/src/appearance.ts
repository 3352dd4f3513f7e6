// Light or dark, and the colors of the theme.

import { computed, type Signal, signal } from "@preact/signals";
import type { Modules } from "./client/wasm.js";
import type { Theme } from "./view-state.js";

export class Appearance {
  readonly theme: Signal<Theme> = signal("auto");
  /** The system's preference, used by the theme `auto`. */
  readonly systemDark: Signal<boolean> = signal(false);
  readonly dark = computed(() =>
    this.theme.value === "auto" ? this.systemDark.value : this.theme.value === "dark",
  );
  readonly #modules: Modules;

  constructor(modules: Modules) {
    this.#modules = modules;
  }

  /** The CSS color of a color word of the protocol, in the current theme. */
  swatch(color: number): string | undefined {
    return this.#modules.colors(this.dark.value)?.swatch(color);
  }

  /** The CSS color of a label on a color word, in the current theme. */
  ink(color: number): string | undefined {
    return this.#modules.colors(this.dark.value)?.ink(color);
  }
}
