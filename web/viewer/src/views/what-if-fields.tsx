// The fields of a scenario with free values: the device's memory and the factor of tokens.

import { useEffect, useId, useState } from "preact/hooks";
import type { QuestionRecord } from "../generated/protocol.js";
import type { ViewUses } from "./workspace.js";

/** Devices that the program knows by name. */
const DEVICES = ["A10G", "L4", "L40S", "A100-40GB", "A100-80GB", "H100", "H200", "B200", "MI300X"];

/** Properties of a field of the question. */
export type FieldProperties = ViewUses<"whatIfs"> & { question: QuestionRecord };

export function MemoryField({ whatIfs, question }: FieldProperties) {
  const [id, list] = [useId(), useId()];
  const isBad = question.error?.item === "device_memory";
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
        value={question.device_memory}
        onChange={({ currentTarget: { value } }) =>
          whatIfs.ask("device_memory", value.trim() || null)
        }
      />
      <datalist id={list}>
        {DEVICES.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </div>
  );
}

export function TokensSlider({ whatIfs, question: { tokens } }: FieldProperties) {
  const id = useId();
  // The slider follows the pointer at once, until the question has its value.
  const [dragged, setDragged] = useState<number | null>(null);
  useEffect(() => setDragged((at) => (at === tokens ? null : at)), [tokens]);
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
          setDragged(valueAsNumber === tokens ? null : valueAsNumber);
          whatIfs.ask("tokens", valueAsNumber === 1 ? null : value);
        }}
      />
      <output for={id} class="num" data-value={tokens}>
        ×{tokens}
      </output>
    </div>
  );
}
