// The fields of a scenario with free values: the device's memory and the factor of tokens.

import { useId, useState } from "preact/hooks";
import type { ViewUses } from "./workspace.js";

/** Devices that the program knows by name. */
const DEVICES = ["A10G", "L4", "L40S", "A100-40GB", "A100-80GB", "H100", "H200", "B200", "MI300X"];

export function MemoryField({ whatIfs }: ViewUses<"whatIfs">) {
  const [id, list] = [useId(), useId()];
  const { deviceMemory } = whatIfs.spec.value;
  const isBad = whatIfs.scenario.value.value?.wrong === deviceMemory;
  return (
    <div class="what-if-field field">
      <label
        for={id}
        title="What the card has. 512 MiB of it are taken to be the CUDA context's, not PyTorch's"
      >
        device memory
      </label>
      <input
        id={id}
        list={list}
        placeholder="80GiB or H100"
        data-testid="what-if-memory"
        aria-invalid={isBad}
        value={deviceMemory}
        onChange={({ currentTarget: { value } }) => whatIfs.ask({ deviceMemory: value.trim() })}
      />
      <datalist id={list}>
        {DEVICES.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </div>
  );
}

export function TokensSlider({ whatIfs }: ViewUses<"whatIfs">) {
  const id = useId();
  const { tokens } = whatIfs.spec.value;
  // The slider follows the pointer at once, whatever the worker does.
  const [dragged, setDragged] = useState<string | null>(null);
  return (
    <div class="what-if-field what-if-tokens">
      <label for={id} title="Batch size times sequence length, against the recording">
        tokens
      </label>
      <input
        id={id}
        type="range"
        min="0.1"
        max="4"
        step="0.1"
        data-testid="what-if-tokens"
        value={dragged ?? tokens}
        aria-valuetext={`${tokens} times the recorded tokens`}
        onInput={({ currentTarget: { value, valueAsNumber } }) => {
          setDragged(value);
          whatIfs.ask({ tokens: valueAsNumber });
        }}
        onChange={() => setDragged(null)}
      />
      <output for={id} class="num" data-value={tokens}>
        ×{tokens}
      </output>
    </div>
  );
}
