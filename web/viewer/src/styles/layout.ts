// The layout: header, rail, center, details. It depends on the element's width, never the window's.

export const layout = `
.app {
  --rail: 200px;
  --details: 304px;
  position: relative;
  display: grid;
  height: 100%;
}
.app[data-stage="landing"] {
  grid-template: "header" var(--header) "main" minmax(0, 1fr) / minmax(0, 1fr);
}
.app[data-stage="run"] {
  grid-template:
    "header header header" var(--header)
    "rail main details" minmax(0, 1fr) / var(--rail) minmax(0, 1fr) var(--details);
}
.app[data-stage="run"][data-rail="header"] {
  grid-template:
    "header header" var(--header)
    "main details" minmax(0, 1fr) / minmax(0, 1fr) var(--details);
}
.app[data-details="false"] { --details: 0px; }
.header {
  grid-area: header;
  display: flex;
  align-items: center;
  gap: 12px;
  min-width: 0;
  padding: 0 8px 0 14px;
  border-bottom: 1px solid var(--line);
}
.brand { font-weight: 650; letter-spacing: -0.01em; }
.run {
  min-width: 0;
  font-weight: 400;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  color: var(--dim);
}
.controls { display: flex; align-items: center; gap: 8px; flex: none; }
.tools { display: flex; align-items: center; gap: 2px; margin-left: auto; flex: none; }
.main { grid-area: main; display: flex; flex-direction: column; min-width: 0; min-height: 0; }
.main { position: relative; outline: 0; }
.app[data-stage="landing"] .main { overflow: auto; }
.busy {
  position: absolute;
  z-index: 2;
  top: -1px;
  left: 0;
  width: 100%;
  height: 2px;
  overflow: hidden;
  pointer-events: none;
}
.busy::after {
  content: "";
  display: block;
  width: 30%;
  height: 100%;
  background: var(--accent);
  animation: busy 1.1s ease-in-out infinite;
}
@keyframes busy { from { transform: translateX(-100%); } to { transform: translateX(334%); } }
@media (prefers-reduced-motion: reduce) { .busy::after { width: 100%; } }
.rail { grid-area: rail; }
.details { grid-area: details; }
.notice {
  display: flex;
  align-items: center;
  gap: 10px;
  padding: 4px 6px 4px 14px;
  border-bottom: 1px solid var(--line);
  background: var(--raised);
}
.notice .icon { flex: none; color: var(--warn); }
.notice.offer .icon { color: var(--accent); }
.notice .button .icon { color: inherit; }
.notice p { flex: 1; min-width: 0; overflow-wrap: anywhere; }
/* Over the plot, and open for the pointer: nothing moves when it goes. */
.hint-strip {
  flex: none;
  display: flex;
  align-items: center;
  gap: 6px;
  padding: 1px 8px 1px 14px;
  border-top: 1px solid var(--line);
  color: var(--dim);
  font-size: 12px;
}
@container timeline (height < 340px) or ((width < 560px) and (height < 520px)) {
  .hint-strip { display: none; }
}
.hint-strip p { flex: 1; min-width: 0; }
.hint-strip b { color: var(--text); font-weight: 550; }
.hint-strip .button { height: 24px; }
.hint-strip .icon { width: 12px; height: 12px; }
.hint-strip kbd {
  padding: 0 5px;
  border: 1px solid var(--line-strong);
  border-radius: 3px;
  background: var(--surface);
  font: 400 var(--small) / 16px var(--mono);
}
.veil {
  position: absolute;
  inset: 0;
  z-index: 30;
  display: grid;
  grid-template-rows: minmax(0, 3fr) minmax(0, 1fr);
  gap: 10px;
  padding: 14px;
  visibility: hidden;
  opacity: 0;
  pointer-events: none;
  background: var(--veil);
  backdrop-filter: blur(4px);
  transition: opacity 100ms;
}
.veil p {
  display: grid;
  place-content: center;
  border: 1px dashed var(--line-strong);
  border-radius: 10px;
  font-size: 15px;
  font-weight: 600;
  text-align: center;
}
.veil span { color: var(--dim); font-size: var(--base); font-weight: 400; }
.app[data-stage="run"][data-dropping] .veil {
  visibility: visible;
  opacity: 1;
  pointer-events: auto;
}
.app[data-dropping="add"] .veil p:not([data-instead]),
.app[data-dropping="open"] .veil [data-instead] {
  border-color: var(--accent);
  background: var(--tint);
}

@container (width < 1120px) {
  .app { --rail: 168px; --details: 292px; }
}
@container (width < 760px) {
  /* A narrow page scrolls: two views below each other have room for both. */
  .app { --main: 620px; }
  .app:has(.panes[data-drawer="true"]) { --main: 800px; }
  .app[data-stage="run"] {
    grid-template:
      "header" max-content
      "rail" max-content
      "main" var(--main)
      "details" max-content / minmax(0, 1fr);
    overflow: auto;
  }
  .app[data-stage="run"][data-rail="header"] {
    grid-template:
      "header" max-content
      "main" var(--main)
      "details" max-content / minmax(0, 1fr);
  }
  .header { flex-wrap: wrap; gap: 6px 10px; padding-block: 5px; }
  .run { flex: 1 1 0; }
  .controls { order: 2; flex: none; }
  .search { order: 2; flex: 1 1 160px; }
  .controls:empty { display: none; }
}
`;
