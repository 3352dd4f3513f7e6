// What an out-of-memory message means, for people who have nothing but the message.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Explained } from "../client/coordinator.js";
import type { Uses } from "../stores.js";

/** The longest text that is explained: a log of this length has its messages near its end. */
const MAX_TEXT = 4 << 20;

/** After the last key until the text is explained, in milliseconds. */
const PAUSE = 150;

export function Explain({ runs }: Uses<"runs">) {
  const [text, setText] = useState("");
  const [said, setSaid] = useState<Explained | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    if (text.trim() === "") {
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
  }, [runs, text]);
  return (
    <div class="explain">
      <h2 id="explain-title">Only an error message? Paste it</h2>
      <textarea
        rows={2}
        spellcheck={false}
        aria-labelledby="explain-title"
        data-testid="explain-text"
        placeholder="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ..."
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div aria-live="polite">
        {failure !== null && <p class="dim">{failure}</p>}
        {said !== null && failure === null && <Answer {...said} />}
      </div>
    </div>
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
