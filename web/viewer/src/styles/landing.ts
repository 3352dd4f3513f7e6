// The landing page.

export const landing = `
.landing {
  display: flex;
  flex-direction: column;
  align-items: center;
  width: min(720px, 100%);
  margin: auto;
  padding: 32px 20px 56px;
  text-align: center;
}
.landing h1 {
  font-size: 26px;
  line-height: 1.2;
  font-weight: 650;
  letter-spacing: -0.02em;
  text-wrap: balance;
}
.lead { max-width: 50ch; margin-top: 10px; color: var(--dim); font-size: 15px; text-wrap: balance; }
.drop-zone {
  position: relative;
  width: 100%;
  margin-top: 28px;
  padding: 52px 20px 96px;
  overflow: hidden;
  border: 1px dashed var(--line-strong);
  border-radius: 10px;
  background: var(--sunk);
  transition: border-color 100ms;
}
.drop-zone[data-over="true"] { border-color: var(--accent); background: var(--hover); }
.drop-zone > * { position: relative; }
.drop-zone > .icon {
  width: 24px;
  height: 24px;
  margin: 0 auto 10px;
  color: var(--faint);
  stroke-width: 1;
}
.drop-title { font-size: 15px; font-weight: 550; }
.drop-buttons {
  display: flex;
  flex-wrap: wrap;
  justify-content: center;
  gap: 8px;
  margin-top: 20px;
}
.explain { width: 100%; margin-top: 28px; text-align: left; }
.explain h2 { font-size: 13px; font-weight: 550; }
.explain textarea {
  display: block;
  width: 100%;
  margin-top: 8px;
  padding: 8px 10px;
  resize: vertical;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--sunk);
  color: var(--text);
  font: 12px / 1.5 var(--mono);
}
.explain textarea::placeholder { color: var(--faint); }
.explained { margin-top: 12px; }
.landing-picture { position: absolute; right: 0; bottom: 0; left: 0; pointer-events: none; }
.landing-picture svg { display: block; width: 100%; height: 218px; }
.landing-picture path[data-category="parameter"] { fill: oklch(64% 0.15 258); }
.landing-picture path[data-category="optimizer"] { fill: oklch(70% 0.12 168); }
.landing-picture path[data-category="gradient"] { fill: oklch(77% 0.14 68); }
.landing-picture path[data-category="activation"] { fill: oklch(65% 0.16 330); }
.landing-picture path[data-category="temporary"] { fill: oklch(58% 0.07 50); }
.landing-picture path[data-category="other"] { fill: oklch(67% 0.012 255); }
.landing-picture::after {
  content: "";
  position: absolute;
  inset: 0;
  background: linear-gradient(
    var(--sunk) 12%,
    color-mix(in srgb, var(--sunk) 82%, transparent) 62%,
    color-mix(in srgb, var(--sunk) 20%, transparent)
  );
}
.starts {
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 1fr));
  gap: 10px;
  width: 100%;
  margin-top: 10px;
}
.starts li { display: flex; }
.start {
  display: flex;
  flex: 1;
  flex-direction: column;
  gap: 3px;
  padding: 12px 14px 13px;
  border: 1px solid var(--line);
  border-radius: 10px;
  background: none;
  font-size: 12px;
  text-align: left;
  cursor: pointer;
}
.start:hover { border-color: var(--line-strong); background: var(--hover); }
.start-title {
  display: flex;
  align-items: center;
  justify-content: space-between;
  font-size: 13px;
  font-weight: 550;
}
.start .icon { width: 13px; height: 13px; color: var(--faint); }
.start:hover .icon { color: var(--accent); }
.record { width: 100%; margin-top: 28px; text-align: left; }
.record-head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 16px; }
.record h2 { color: var(--dim); font-weight: 500; }
.record a { color: var(--accent); text-underline-offset: 3px; text-decoration-thickness: 1px; }
.record-code { position: relative; margin-top: 6px; }
.record-code .button {
  position: absolute;
  top: 5px;
  right: 5px;
  background: var(--sunk);
  font-size: 12px;
}
.record pre {
  padding: 10px 64px 10px 14px;
  overflow-wrap: anywhere;
  white-space: pre-wrap;
  border: 1px solid var(--line);
  border-radius: var(--radius);
  background: var(--sunk);
  color: var(--dim);
  font: 400 12px / 1.6 var(--mono);
}

@container (width < 620px) {
  .starts { grid-template-columns: minmax(0, 1fr); }
  .landing { padding-inline: 14px; }
}
`;
