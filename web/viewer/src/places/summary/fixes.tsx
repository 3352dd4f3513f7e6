// The changes that were replayed: what each needs, whether it fits, and what it costs. A click
// tries one in What if.

import type { FixView, SummaryView } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import type { ViewUses } from "../../views/workspace.js";

type FixesUses = ViewUses<"viewSelection" | "navigation">;

export function Fixes({ view, ...owners }: FixesUses & { view: SummaryView }) {
  const { fixes, fixesTitle, scale } = view;
  const has = (of: (fix: FixView) => string) => fixes.some((fix) => of(fix) !== "");
  const isFailure = fixes.some(({ outcome }) => outcome !== null);
  const [hasCost, hasBasis] = [has(({ cost }) => cost), has(({ basis }) => basis)];
  return (
    <section class="summary-fixes" aria-labelledby="summary-fixes">
      <h3 id="summary-fixes">{fixesTitle}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">
              <span class="visually-hidden">number</span>
            </th>
            <th scope="col">change</th>
            <th scope="col" class="number">
              needs
            </th>
            {scale !== "" && <th scope="col">{scale}</th>}
            {isFailure && (
              <th scope="col">
                <span class="visually-hidden">outcome</span>
              </th>
            )}
            {hasCost && <th scope="col">costs</th>}
            {hasBasis && <th scope="col">basis</th>}
            <th scope="col">
              <span class="visually-hidden">try</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {fixes.map((fix) => (
            <Fix key={fix.text} {...owners} fix={fix} {...{ isFailure, hasCost, hasBasis }} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

type FixProperties = FixesUses & {
  fix: FixView;
  isFailure: boolean;
  hasCost: boolean;
  hasBasis: boolean;
};

const ICONS = { fits: "check", fits_barely: "about", short: "close", unknown: "about" } as const;

function Fix({ fix, isFailure, hasCost, hasBasis, viewSelection, navigation }: FixProperties) {
  const { number, text, bytes, gauge, outcome, verdict, cost, basis, question } = fix;
  const attempt = () => {
    viewSelection.scenario.value = question;
    navigation.open("what-if");
  };
  return (
    <tr data-testid="fix" data-outcome={outcome ?? undefined} data-question={question}>
      <td class="dim">{number}</td>
      <th scope="row">{text}</th>
      <td class="number" data-value={bytes.raw} title={bytes.exact}>
        {bytes.text}
      </td>
      {gauge && (
        <td class="fix-gauge">
          <span
            class="gauge"
            style={{ "--needs": `${gauge[0] * 100}%`, "--limit": `${gauge[1] * 100}%` }}
          />
        </td>
      )}
      {isFailure && (
        <td class="fix-verdict">
          {outcome && <Icon name={ICONS[outcome]} />} {verdict}
        </td>
      )}
      {hasCost && <td class="fix-cost">{cost}</td>}
      {hasBasis && <td class="fix-basis">{basis}</td>}
      <td>
        {question !== "" && (
          <button type="button" class="link" aria-label={`Try ${text}`} onClick={attempt}>
            Try
          </button>
        )}
      </td>
    </tr>
  );
}
