// Colors, fonts and shared rules. Surfaces are neutral: hue is for data, one accent for selection,
// and one for warnings. Texts have a contrast of at least 4.5 on their surface.

export const tokens = `
:host {
  display: block;
  height: 100%;
  min-height: 280px;
  container-type: inline-size;
  contain: layout;
}
.app {
  --sans: var(--vramscope-font, system-ui, -apple-system, "Segoe UI", sans-serif);
  --mono: var(
    --vramscope-mono,
    ui-monospace, "SF Mono", "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace
  );
  --base: var(--vramscope-size, 13px);
  --small: 11px;
  --radius: var(--vramscope-radius, 6px);
  --header: 40px;
  color: var(--text);
  background: var(--surface);
  font: 400 var(--base) / 1.45 var(--sans);
  font-variant-numeric: tabular-nums;
  -webkit-font-smoothing: antialiased;
}
.app[data-theme="dark"] {
  color-scheme: dark;
  --surface: #11151a;
  --raised: #1a1f26;
  --sunk: #0b0d10;
  --hover: #171c22;
  --line: #242a32;
  --line-strong: #333b46;
  --text: #e9edf2;
  --dim: #9aa4b0;
  --faint: #7f8995;
  --accent: var(--vramscope-accent, #6cb6ff);
  --accent-solid: var(--vramscope-accent, #2470c2);
  --on-accent: #ffffff;
  --warn: #ff8f5e;
  --error: #ff8d83;
  --veil: rgb(11 13 16 / 82%);
  --tint: color-mix(in srgb, var(--accent) 16%, transparent);
  --warn-tint: rgb(255 143 94 / 15%);
  --error-tint: rgb(255 141 131 / 16%);
  --segment: #4b4f55;
  --phase-step: #171b21;
  --phase-shaded: #232932;
  --phase-forward: #3a2b4d;
  --phase-backward: #4d3b1e;
  --phase-optimizer: #1d463d;
  --phase-other: #20262d;
  --phase-mixed: #3a4049;
  --phase-text: #e1e6ec;
  --band-reserved: #f3f5f8;
  --band-active: #62d28a;
  --band-allocated: #6fdcea;
  --band-pools: #c9a1ff;
  --band-simulated: #ff8fc7;
  --shadow: 0 8px 24px rgb(0 0 0 / 45%), 0 0 0 1px var(--line-strong);
}
.app[data-theme="light"] {
  color-scheme: light;
  --surface: #ffffff;
  --raised: #f1f3f6;
  --sunk: #fbfcfd;
  --hover: #f5f7f9;
  --line: #e2e6eb;
  --line-strong: #cbd2da;
  --text: #15191e;
  --dim: #57616d;
  --faint: #68727e;
  --accent: var(--vramscope-accent, #0b66c3);
  --accent-solid: var(--vramscope-accent, #0b66c3);
  --on-accent: #ffffff;
  --warn: #b04110;
  --error: #b3261e;
  --veil: rgb(255 255 255 / 86%);
  --tint: color-mix(in srgb, var(--accent) 12%, transparent);
  --warn-tint: rgb(176 65 16 / 11%);
  --error-tint: rgb(200 40 30 / 11%);
  --segment: #b0b4b9;
  --phase-step: #f1f3f6;
  --phase-shaded: #e2e7ed;
  --phase-forward: #ddd0ee;
  --phase-backward: #f0dcb4;
  --phase-optimizer: #bfe0d5;
  --phase-other: #eceff3;
  --phase-mixed: #d5dae1;
  --phase-text: #262d36;
  --band-reserved: #2c3036;
  --band-active: #1b7f3f;
  --band-allocated: #0a7594;
  --band-pools: #7c44c3;
  --band-simulated: #b8186f;
  --shadow: 0 8px 24px rgb(20 30 45 / 16%), 0 0 0 1px var(--line-strong);
}
* { box-sizing: border-box; }
h1, h2, h3, p, dl, dd, ol, ul, pre, fieldset { margin: 0; padding: 0; }
ol, ul { list-style: none; }
fieldset { border: 0; min-width: 0; }
h1, h2, h3 { font-size: inherit; font-weight: 600; }
button, select { font: inherit; color: inherit; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.dim { color: var(--dim); }
.mono { font-family: var(--mono); }
.icon {
  display: block;
  fill: none;
  stroke: currentColor;
  stroke-width: 1.3;
  stroke-linecap: round;
  stroke-linejoin: round;
}
.swatch { flex: none; width: 9px; height: 9px; border-radius: 2px; }
.bar { display: block; height: 2px; overflow: hidden; border-radius: 1px; background: var(--line); }
.bar::before {
  content: "";
  display: block;
  height: 100%;
  background: var(--accent);
  transform: scaleX(var(--fraction));
  transform-origin: 0 0;
  transition: transform 120ms linear;
}
.visually-hidden {
  position: absolute;
  width: 1px;
  height: 1px;
  margin: -1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
@media (prefers-reduced-motion: reduce) {
  * { transition: none !important; animation: none !important; }
}
`;
