// The fields of a scenario with free values: changes of the program.

import { useId } from "preact/hooks";
import { type QuestionRecord, USUAL_CHANGES } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import type { ViewUses } from "../../views/workspace.js";

/** Properties of a field of the question. */
export type FieldProperties = ViewUses<"whatIfs"> & { question: QuestionRecord };

export function RecipesField({ whatIfs, question }: FieldProperties) {
  const [id, list] = [useId(), useId()];
  return (
    <>
      <div class="what-if-field what-if-recipes field">
        <label for={id} title="Changes of the program, with commas between them">
          changes of the program
        </label>
        <input
          id={id}
          name="apply"
          placeholder="batch:0.5,del:train.py:12"
          data-testid="what-if-apply"
          aria-invalid={question.error?.item === "apply"}
          value={question.apply}
          onChange={({ currentTarget: { value } }) => whatIfs.ask("apply", value.trim() || null)}
        />
      </div>
      <div class="what-if-field">
        <label for={list}>usual changes</label>
        <span class="select small">
          <select
            id={list}
            data-testid="what-if-add"
            value=""
            onChange={({ currentTarget }) => {
              const [item, value] = currentTarget.value.split(":");
              if (item) whatIfs.ask(item, value ?? "");
              currentTarget.value = "";
            }}
          >
            <option value="">add a change</option>
            {USUAL_CHANGES.map((change) => (
              <option key={change}>{change}</option>
            ))}
          </select>
          <Icon name="down" />
        </span>
      </div>
    </>
  );
}
