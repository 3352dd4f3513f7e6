// What the filtered blocks hold together, in the details.

import { partsOf } from "../filters.js";
import type { CategoryRow, GroupCard, StackShareRow } from "../generated/protocol.js";
import { CopyText } from "../ui/details.js";
import { Icon } from "../ui/icons.js";
import { Rows } from "./detail-rows.js";
import type { ViewUses } from "./workspace.js";

type GroupOwners = ViewUses<"filters" | "appearance" | "groups" | "status">;

export function Group(owners: GroupOwners) {
  const { filters, groups } = owners;
  const card = groups.card.value.value;
  return (
    <article aria-labelledby="details-title" data-kind="Group" data-testid="group">
      <div class="details-kind">
        <span data-key="blocks" data-value={card?.blocks.raw}>
          {card?.blocks.exact}
        </span>
        <button
          type="button"
          class="button plain"
          title="Clear the filters (Esc)"
          aria-label="Clear the filters"
          onClick={() => filters.clear()}
        >
          <Icon name="close" />
        </button>
      </div>
      {card && <Content {...owners} card={card} />}
    </article>
  );
}

function Content({ card, ...owners }: GroupOwners & { card: GroupCard }) {
  const { appearance, groups, status } = owners;
  const { title, note, rows, stepsLabel, steps, categories, sites, more, copy } = card;
  const [only, ...others] = categories;
  return (
    <>
      <p class="details-name" id="details-title">
        {only && others.length === 0 && (
          <span class="swatch" style={{ background: appearance.swatch(only.color) }} />
        )}
        {owners.filters.terms.value.map((term) => nameOf(term, categories)).join(" · ")}
      </p>
      <h2 class="details-size" data-value={title.raw} title={title.exact}>
        {title.text} <span class="details-note">{note}</span>
      </h2>
      <Rows rows={rows} />
      {steps.length > 0 && (
        <>
          <h4>By {stepsLabel === "passes" ? "pass" : stepsLabel.slice(0, -1)}, most at once</h4>
          <ol class="step-bars" data-testid="step-bars">
            {steps.map(({ label, bytes, share, term }) => (
              <li key={label}>
                <button
                  type="button"
                  class="step-bar"
                  title={`${label}: ${bytes.text}`}
                  aria-label={`${term}, ${bytes.text}`}
                  aria-pressed={groups.isChosen([term])}
                  data-value={bytes.raw}
                  onClick={() => groups.choose([...owners.filters.terms.peek(), term])}
                >
                  <span style={{ height: `${share * 100}%` }} />
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
      {categories.length > 1 && (
        <>
          <h4>By category</h4>
          <ul class="shares">
            {categories.map(({ name, label, bytes, share, color }) => (
              <li key={name}>
                <button
                  type="button"
                  class="share"
                  data-category={name}
                  onClick={() =>
                    groups.choose([...owners.filters.terms.peek(), `category:${name}`])
                  }
                >
                  <span
                    class="share-bar"
                    style={{ width: `${share * 100}%`, background: appearance.swatch(color) }}
                  />
                  <span class="share-text">{label}</span>
                  <span class="num" data-value={bytes.raw} title={bytes.exact}>
                    {bytes.text}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      {sites.length > 1 && (
        <>
          <h4>By call site</h4>
          <Sites
            appearance={appearance}
            rows={sites}
            choose={({ terms }) => groups.choose([...owners.filters.terms.peek(), ...terms])}
          />
          {more !== "" && <p class="dim">{more}</p>}
        </>
      )}
      <p class="copy-line">
        <CopyText text={copy} status={status} title="Copy the group as text" />
      </p>
    </>
  );
}

/** A term without its key, and the label of a category. */
const nameOf = (term: string, categories: readonly CategoryRow[]) =>
  categories.find(({ name }) => term === `category:${name}`)?.label ?? partsOf(term).value;

type SitesProperties = ViewUses<"appearance"> & {
  rows: readonly StackShareRow[];
  choose(row: StackShareRow, event: MouseEvent): void;
};

/** Call sites with a bar, their number of blocks and their largest block each. */
export function Sites({ appearance, rows, choose }: SitesProperties) {
  return (
    <ul class="shares">
      {rows.map((row) => (
        <li key={row.block}>
          <button
            type="button"
            class="share"
            title={[row.site, row.bytes.exact, row.blocks.exact, row.note].join(", ")}
            onClick={(event) => choose(row, event)}
          >
            <span
              class="share-bar"
              style={{ width: `${row.share * 100}%`, background: appearance.swatch(row.color) }}
            />
            <span class="share-text">
              <span class="share-site">{row.site}</span>
              <span class="share-via">
                {row.blocks.exact} · {row.note}
              </span>
            </span>
            <span class="num" data-value={row.bytes.raw}>
              {row.bytes.text}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
