// The fields of a scenario that scale or leave out the blocks of a category or a call site.

import { useId, useState } from "preact/hooks";
import { CATEGORIES, type ScaledPart } from "../generated/protocol.js";
import { Icon } from "../ui/icons.js";
import type { FieldProperties } from "./what-if-fields.js";
import type { ViewUses } from "./workspace.js";

/** Factors that are worth a try. */
const FACTORS = [0, 0.25, 0.5, 0.75, 1.5, 2];
const SITE = "call site";

const isCategory = (what: string) => CATEGORIES.some((name) => name === what);

function factorText(what: string, factor: number): string {
  if (factor === 0) return "left out";
  const text = `\u00d7${factor}`;
  return what === "optimizer_state" && factor === 0.25 ? `${text} (8-bit)` : text;
}

export function Parts({ selection, whatIfs, question }: FieldProperties & ViewUses<"selection">) {
  const id = useId();
  const [isNaming, setNaming] = useState(false);
  const { parts } = question;
  const focus = selection.focus.value;
  const held = focus?.file.cards.value?.[focus.part]?.categories ?? [];
  const free = CATEGORIES.filter((name) => parts.every(({ what }) => what !== name));
  const add = (what: string) => {
    if (what === SITE) setNaming(true);
    else whatIfs.ask(what, "0");
  };
  return (
    <>
      {parts.map((part) => (
        <Part key={part.what} part={part} whatIfs={whatIfs} />
      ))}
      {isNaming && (
        <SiteField
          done={(site) => {
            setNaming(false);
            if (site !== "") whatIfs.ask(site, "0");
          }}
        />
      )}
      <div class="what-if-field">
        <label for={id} title="Another optimizer or precision, or code that is gone">
          scale or leave out
        </label>
        <span class="select small">
          <select
            id={id}
            data-testid="what-if-add"
            value=""
            onChange={({ currentTarget }) => {
              add(currentTarget.value);
              currentTarget.value = "";
            }}
          >
            <option value="">add a part</option>
            {free.map((name) => {
              const bytes = held.find((row) => row.category === name)?.bytes.text;
              return (
                <option key={name} value={name}>
                  {bytes === undefined ? name : `${name}, ${bytes}`}
                </option>
              );
            })}
            <option value={SITE}>call site…</option>
          </select>
          <Icon name="down" />
        </span>
      </div>
    </>
  );
}

function Part({ part: { what, factor }, whatIfs }: { part: ScaledPart } & ViewUses<"whatIfs">) {
  const id = useId();
  const isWrong = whatIfs.scenario.value.value?.error?.item === what;
  const factors = FACTORS.includes(factor) ? FACTORS : [...FACTORS, factor];
  return (
    <div class="what-if-field what-if-part" data-part={what} data-wrong={isWrong}>
      <label for={id} title={what}>
        {what}
      </label>
      <span class="select small">
        <select
          id={id}
          value={factor}
          onChange={({ currentTarget: { value } }) => whatIfs.ask(what, value)}
        >
          {(isCategory(what) ? factors : [factor]).map((each) => (
            <option key={each} value={each}>
              {factorText(what, each)}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </span>
      <button
        type="button"
        class="button plain"
        title="Take it as recorded"
        aria-label={`Take ${what} as recorded`}
        onClick={() => whatIfs.ask(what, null)}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

/** A call site that is entered. An empty one is dropped. */
function SiteField({ done }: { done(site: string): void }) {
  const id = useId();
  return (
    <div class="what-if-field field">
      <label for={id} title="A part of its name as the tables show it">
        {SITE}
      </label>
      <input
        id={id}
        ref={(input) => input?.focus()}
        placeholder="train.py:12"
        data-testid="what-if-site"
        onBlur={({ currentTarget: { value } }) => done(value.trim())}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key !== "Escape") return;
          event.stopPropagation();
          event.currentTarget.value = "";
          event.currentTarget.blur();
        }}
      />
    </div>
  );
}
