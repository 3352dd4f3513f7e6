// What an out-of-memory message means, for people who have nothing but the message. A link that is
// pasted leads to the page that may fetch it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Explained } from "../client/coordinator.js";
import { linkTo } from "../host/addresses.js";
import type { Uses } from "../stores.js";
import type { Opening } from "./app.js";
import { Icon } from "./icons.js";

/** The longest text that is explained: a log of this length has its messages near its end. */
const MAX_TEXT = 4 << 20;

/** After the last key until the text is explained, in milliseconds. */
const PAUSE = 150;

type ExplainProperties = Uses<"runs"> & Pick<Opening, "links">;

export function Explain({ runs, links }: ExplainProperties) {
  const [text, setText] = useState("");
  const [said, setSaid] = useState<Explained | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const link = links === null ? null : linkTo(links, text);
  const isLink = link !== null;
  useEffect(() => {
    if (text.trim() === "" || isLink) {
      setSaid(null);
      setFailure(null);
      return;
    }
    let isOld = false;
    const show = async () => {
      try {
        const answer = await runs.coordinator.explain(text.slice(-MAX_TEXT));
        if (isOld) return;
        setSaid(answer);
        setFailure(null);
      } catch (error) {
        if (!isOld) setFailure((error as { message: string }).message);
      }
    };
    const waiting = setTimeout(show, PAUSE);
    return () => {
      isOld = true;
      clearTimeout(waiting);
    };
  }, [runs, text, isLink]);
  return (
    <>
      <div class="explain">
        <h2 id="explain-title">
          Paste an error message{links !== null && ", or a link to a snapshot"}
        </h2>
        <textarea
          rows={5}
          spellcheck={false}
          aria-labelledby="explain-title"
          data-testid="explain-text"
          placeholder="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ..."
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <div class="explain-answer" aria-live="polite">
        {link !== null && (
          <a class="button primary" href={link.href} data-testid="open-link">
            Open from {link.hosts} <Icon name="go" />
          </a>
        )}
        {failure !== null && <p class="dim">{failure}</p>}
        {said !== null && failure === null && <Answer {...said} />}
      </div>
    </>
  );
}

/** An answer of the worker in HTML. Its styles hold for it alone. */
function Answer({ html, styles }: Explained) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    root.adoptedStyleSheets = [sheet];
    // The worker escapes every text. Scripts of a parsed document do not run.
    root.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  }, [html, styles]);
  return <div class="explained" data-testid="explained" ref={host} />;
}
