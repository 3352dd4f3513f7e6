// The table of levers over the whole page: by cost, with the edit of a row, the settings of the
// allocator, and what is no lever.

import { useSignal } from "@preact/signals";
import type { Cost, LeverItem } from "../../generated/protocol.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Icon } from "../../ui/icons.js";
import { Gpu } from "../../views/gpu.js";
import type { ViewUses } from "../../views/workspace.js";
import { LeverHead, LeverRow, type LeversUses, Recorded, Sum } from "./lever-table.js";
import type { Story } from "./story.js";

const GROUPS: readonly [cost: Cost, title: string][] = [
  ["none", "costs nothing"],
  ["edit", "costs an edit"],
  ["time", "costs time"],
  ["precision", "costs precision"],
  ["batch", "costs batch"],
];

type UnfoldedProperties = LeversUses & ViewUses<"viewSelection"> & { story: Story };

export function Unfolded({ story, ...owners }: UnfoldedProperties) {
  const { levers, navigation } = owners;
  /** The lever whose edit is shown; null for the first that is chosen. */
  const looked = useSignal<string | null>(null);
  const answer = levers.table.value.value;
  const rows = answer?.rows ?? [];
  const shown = rows.find(({ id }) => id === looked.value) ?? levers.chosen.value[0] ?? rows[0];
  const edits = levers.chosen.value.map(({ edit }) => edit).filter(Boolean);
  const fold = () => {
    levers.isUnfolded.value = false;
  };
  return (
    <div class="unfolded" data-testid="unfolded">
      <p class="unfolded-back">
        <button type="button" class="link" aria-keyshortcuts="u Escape" onClick={fold}>
          <Icon name="back" /> Back to the summary
        </button>
        <span class="dim">{story.headline}</span>
      </p>
      <div class="levers-head">
        <h2>What to change</h2>
        <Gpu {...owners} />
      </div>
      <div class="unfolded-sum" data-empty={levers.chosen.value.length === 0}>
        {levers.isSet.value ? (
          <Sum levers={levers} />
        ) : (
          <p class="dim">Tick changes: the run is replayed with all of them</p>
        )}
        {edits.length > 0 && <CopyButton text={edits.join("\n\n")} name="Copy the edits" />}
        {(levers.sum.value.value?.top ?? 0) > 0 && (
          <button type="button" class="button" onClick={() => navigation.open("timeline")}>
            Show on the timeline
          </button>
        )}
      </div>
      <div class="unfolded-body">
        <div class="levers" aria-busy={levers.table.waiting.value}>
          <LeverHead answer={answer} />
          {answer?.now && <Recorded now={answer.now} answer={answer} />}
          {GROUPS.map(([cost, title]) => {
            const own = rows.filter((row) => row.cost === cost);
            if (own.length === 0 || answer === null) return null;
            return (
              <section key={cost} aria-label={title} data-cost={cost}>
                <h3>{title}</h3>
                {own.map((item) => (
                  <LeverRow
                    key={item.id}
                    {...owners}
                    item={item}
                    answer={answer}
                    isLooked={item.id === shown?.id}
                    look={() => {
                      looked.value = item.id;
                    }}
                  />
                ))}
              </section>
            );
          })}
          {answer === null && (
            <p class="dim" aria-busy="true">
              Replaying the run with every change
            </p>
          )}
          {answer && answer.note !== "" && <p class="levers-note dim">{answer.note}</p>}
        </div>
        <div class="unfolded-side">
          {shown && <EditCard item={shown} {...owners} />}
          <Settings {...owners} />
          <Others {...owners} />
        </div>
      </div>
    </div>
  );
}

function EditCard({ item, sources }: ViewUses<"sources"> & { item: LeverItem }) {
  const { text, site, file, line, edit, why } = item;
  return (
    <section class="edit-card" aria-label="Edit" data-testid="lever-edit">
      <p>
        <b>{text}</b>
        {site !== "" && (
          <>
            {" at "}
            <button type="button" class="place" onClick={() => sources.open(file, line)}>
              {site}
            </button>
          </>
        )}
      </p>
      {why !== "" && <p class="dim">{why}</p>}
      {edit === "" ? (
        <p class="dim">No edit is written for it.</p>
      ) : (
        <>
          <pre>{edit}</pre>
          <CopyButton text={edit} name="Copy" />
        </>
      )}
    </section>
  );
}

function Settings({ levers }: ViewUses<"levers">) {
  const rows = levers.settings.value.value;
  return (
    <section
      aria-labelledby="lever-settings"
      data-testid="lever-settings"
      aria-busy={rows === null}
    >
      <h3 id="lever-settings">Allocator settings</h3>
      {rows === null && <p class="dim">Replaying the run with each setting</p>}
      {rows !== null && rows.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">needs, with expandable_segments</th>
              <th scope="col">off</th>
              <th scope="col">on</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ setting, needs }) => (
              <tr key={setting}>
                <th scope="row">{setting}</th>
                {needs.map((each, index) => (
                  <td key={index} data-value={each?.raw} title={each?.exact}>
                    {each?.text ?? "not supported"}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows?.length === 0 && <p class="dim">The run cannot be replayed.</p>}
    </section>
  );
}

function Others({ levers }: ViewUses<"levers">) {
  const others = levers.table.value.value?.others ?? [];
  if (others.length === 0) return null;
  return (
    <section aria-labelledby="lever-others" data-testid="lever-others">
      <h3 id="lever-others">Not in the table</h3>
      <dl class="other-changes">
        {others.map(({ why, changes }) => (
          <div key={why}>
            <dt>{why}</dt>
            <dd>
              {why === "not possible"
                ? changes.map((change) => <p key={change}>{change}</p>)
                : changes.join(", ")}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
