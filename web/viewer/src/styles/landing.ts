// The landing page.

export const landing = `
.landing {
  display: flex;
  flex-direction: column;
  align-items: center;
  width: min(640px, 100%);
  margin: auto;
  padding: 32px 20px 56px;
  text-align: center;
}
.landing h1 { font-size: 26px; line-height: 1.2; font-weight: 650; letter-spacing: -0.02em; }
.lead { max-width: 50ch; margin-top: 10px; color: var(--dim); font-size: 15px; text-wrap: balance; }
.drop-zone {
  width: 100%;
  margin-top: 28px;
  padding: 36px 20px 32px;
  border: 1px dashed var(--line-strong);
  border-radius: 10px;
  background: var(--sunk);
  transition: border-color 100ms;
}
.drop-zone[data-over="true"] { border-color: var(--accent); background: var(--hover); }
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
.record { width: 100%; margin-top: 28px; text-align: left; }
.record-head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 16px; }
.record h2 { color: var(--dim); font-weight: 500; }
.record a { color: var(--accent); text-underline-offset: 3px; text-decoration-thickness: 1px; }
.record pre {
  margin-top: 6px;
  padding: 10px 14px;
  overflow-x: auto;
  border: 1px solid var(--line);
  border-radius: var(--radius);
  background: var(--sunk);
  color: var(--dim);
  font: 400 12px / 1.6 var(--mono);
}
`;
