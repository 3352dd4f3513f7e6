// What other settings, another device or a changed program would reserve.

import { useId } from "preact/hooks";
import type { ScenarioRow, WhatIfCard } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import type { ViewUses } from "../../views/workspace.js";
import { Plan } from "./plan.js";
import { RecipesField } from "./what-if-fields.js";

type WhatIfProperties = ViewUses<"selection" | "steps" | "whatIfs" | "navigation">;

export function WhatIf({ selection, steps, whatIfs, navigation }: WhatIfProperties) {
  const card = whatIfs.card.value.value;
  if (card === null) {
    return (
      <p class="quiet" aria-busy="true">
        {selection.target ? "Replaying the recording through the model" : "Open a file first."}
      </p>
    );
  }
  if (card.declined !== null) {
    return (
      <div class="quiet" data-testid="what-if" data-declined="true">
        <h3>No prediction for this recording</h3>
        <p data-testid="what-if-declined">{card.declined}</p>
        <p>
          Numbers are shown only where the model reproduces what was recorded, after every event.
        </p>
      </div>
    );
  }
  return (
    <div class="what-if" data-testid="what-if">
      <p class="what-if-status" data-testid="what-if-calibration">
        <Icon name="check" />
        <span>{card.calibration}</span>
      </p>
      <Plan whatIfs={whatIfs} />
      <div class="what-if-body">
        <Verdict whatIfs={whatIfs} navigation={navigation} />
        <Question whatIfs={whatIfs} card={card} />
        <div class="what-if-answers">
          <Scenarios whatIfs={whatIfs} steps={steps} />
        </div>
      </div>
    </div>
  );
}

type Asking = ViewUses<"whatIfs"> & { card: WhatIfCard };

/** Values that are worth a try. */
const SPLITS = [64, 128, 256, 512, 1024];
const DIVISIONS = [2, 4, 8, 16];

function Question({ whatIfs, card }: Asking) {
  const { question } = card;
  const isOn = question.expandable_segments ?? card.expandableSegments;
  return (
    <form
      class="what-if-question"
      aria-label="What differs from the recording"
      onSubmit={(event) => event.preventDefault()}
    >
      <label class="what-if-field">
        <span>expandable_segments</span>
        <input
          type="checkbox"
          role="switch"
          class="switch"
          data-testid="what-if-expandable"
          checked={isOn}
          aria-checked={isOn}
          onChange={({ currentTarget: { checked } }) =>
            whatIfs.ask(
              "expandable_segments",
              checked === card.expandableSegments ? null : checked ? "True" : "False",
            )
          }
        />
      </label>
      <Values
        label="max_split_size_mb"
        recorded={card.maxSplitSize}
        none="no limit"
        values={SPLITS}
        value={question.max_split_size_mb}
        testid="what-if-split"
        choose={(value) => whatIfs.ask("max_split_size_mb", value)}
      />
      <Values
        label="roundup_power2_divisions"
        recorded={card.roundupPower2Divisions}
        none="off"
        values={DIVISIONS}
        value={question.roundup_power2_divisions}
        testid="what-if-roundup"
        choose={(value) => whatIfs.ask("roundup_power2_divisions", value)}
      />
      <RecipesField whatIfs={whatIfs} question={question} />
      <button
        type="button"
        class="link what-if-reset"
        disabled={!whatIfs.isChanged.value}
        onClick={() => whatIfs.reset()}
      >
        Back to the recording
      </button>
    </form>
  );
}

interface ValuesProperties {
  label: string;
  /** The recording's value in words. */
  recorded: string;
  /** 0 in words. */
  none: string;
  values: readonly number[];
  value: number | null;
  testid: string;
  choose(value: string | null): void;
}

/** A setting with a number. */
function Values({ label, recorded, none, values, value, testid, choose }: ValuesProperties) {
  const id = useId();
  return (
    <div class="what-if-field">
      <label for={id}>{label}</label>
      <span class="select small">
        <select
          id={id}
          data-testid={testid}
          value={value ?? ""}
          onChange={({ currentTarget: { value: chosen } }) => choose(chosen === "" ? null : chosen)}
        >
          <option value="">{recorded} (recorded)</option>
          {recorded !== none && <option value={0}>{none}</option>}
          {values.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </span>
    </div>
  );
}

function Verdict({ whatIfs, navigation }: ViewUses<"whatIfs" | "navigation">) {
  const answer = whatIfs.scenario.value.value;
  const isWaiting = whatIfs.scenario.waiting.value;
  const scenario = answer?.scenario;
  return (
    <div class="what-if-verdict" aria-busy={isWaiting} data-fits={scenario?.record.fits}>
      {answer?.error ? (
        <p class="error" role="alert">
          {answer.error.text}
        </p>
      ) : (
        <p aria-live="polite" data-testid="what-if-verdict">
          {answer?.verdict ?? "Replaying"}
        </p>
      )}
      {scenario && <span class="dim what-if-basis">{scenario.view.basis}</span>}
      {scenario && whatIfs.isChanged.value && (
        <button type="button" class="link" onClick={() => navigation.open("timeline")}>
          Show on the timeline
        </button>
      )}
      {scenario && scenario.record.conf !== "" && (
        <code title="What to set before Python starts">
          PYTORCH_CUDA_ALLOC_CONF={scenario.record.conf}
        </code>
      )}
    </div>
  );
}

function Scenarios({ whatIfs, steps }: ViewUses<"whatIfs" | "steps">) {
  const usual = whatIfs.usual.value.value;
  const asked = whatIfs.scenario.value.value?.scenario;
  const open = (event: number) => steps.goTo(event);
  // The verdict says what is wrong with the question.
  if (usual?.rows.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="what-if-table" aria-label="Scenarios" tabIndex={0}>
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">change</th>
            <th scope="col" data-number="true">
              reserved peak
            </th>
            <th scope="col" data-number="true" data-column="difference">
              difference
            </th>
            <th scope="col">outcome</th>
            <th scope="col" data-number="true" data-column="active">
              active peak
            </th>
            <th
              scope="col"
              data-number="true"
              data-column="flushes"
              title="How often all free memory was returned"
            >
              flushes
            </th>
            <th scope="col" data-number="true" title="The memory that PyTorch must have">
              needs
            </th>
            <th scope="col" data-column="basis">
              basis
            </th>
          </tr>
        </thead>
        <tbody aria-busy={whatIfs.scenario.waiting.value}>
          {asked && whatIfs.isChanged.value && (
            <Scenario row={asked} name="as asked" open={open} isAsked />
          )}
        </tbody>
        <tbody aria-busy={whatIfs.usual.waiting.value}>
          {(usual?.rows ?? []).map((row) => (
            <Scenario key={row.record.change} row={row} name={row.record.change} open={open} />
          ))}
        </tbody>
      </table>
      {usual === null ? (
        <p class="what-if-sentence" aria-busy="true">
          Replaying the usual settings, and searching for the least memory of each
        </p>
      ) : (
        usual.sentence !== "" && <p class="what-if-sentence">{usual.sentence}</p>
      )}
    </section>
  );
}

interface ScenarioProperties {
  row: ScenarioRow;
  name: string;
  isAsked?: boolean;
  open: (event: number) => void;
}

function Scenario({ row: { record, view }, name, isAsked = false, open }: ScenarioProperties) {
  const { difference } = view;
  const [runsOutAt] = record.ooms;
  const isPredicted = record.declined === null;
  return (
    <tr data-asked={isAsked} data-change={name}>
      <th scope="row">{name}</th>
      <td
        class="num"
        data-column="reserved"
        data-label="reserved peak"
        data-value={record.reserved_peak.raw}
        title={`${view.peakText}, ${record.reserved_peak.exact}`}
      >
        {isPredicted && record.reserved_peak.text}
      </td>
      <td
        class="num"
        data-column="difference"
        data-value={difference?.raw}
        title={difference?.exact}
      >
        {difference?.raw === "0" ? "" : difference?.text}
      </td>
      <td
        data-column="outcome"
        data-label="outcome"
        data-fits={record.fits}
        data-value={runsOutAt?.raw}
      >
        {runsOutAt === undefined ? (
          view.outcome
        ) : (
          <button type="button" class="link" onClick={() => open(Number(runsOutAt.raw))}>
            {view.outcome}
          </button>
        )}
      </td>
      <td
        class="num"
        data-column="active"
        data-value={record.active_peak.raw}
        title={record.active_peak.exact}
      >
        {isPredicted && record.active_peak.text}
      </td>
      <td class="num" data-column="flushes" data-value={record.flushes.raw}>
        {isPredicted && record.flushes.text}
      </td>
      <td
        class="num"
        data-column="needs"
        data-label="needs"
        data-value={record.least_device_memory?.raw}
        title={record.least_device_memory?.exact}
      >
        {record.least_device_memory?.text}
      </td>
      <td class="dim" data-column="basis" data-label="basis">
        {view.basis}
      </td>
    </tr>
  );
}
