// Icons on a 16 px grid.

const PATHS = {
  back: "M10 3.5 5.5 8l4.5 4.5",
  forward: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  go: "M2 8h11M9 4l4 4-4 4",
  up: "M3.5 10 8 5.5 12.5 10",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.4 10.4 14 14",
  panel: "M2 3h12v10H2zM10 3v10",
  save: "M8 2v7.5M4.8 6.8 8 10l3.2-3.2M2.5 12.5v1.3h11v-1.3",
  plus: "M8 3v10M3 8h10",
  file: "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3",
  folder: "M1.8 3.5h4l1.4 1.6h7v7.6H1.8z",
  sun: `M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15
    M3.1 3.1l1.1 1.1M11.8 11.8l1.1 1.1M3.1 12.9l1.1-1.1M11.8 4.2l1.1-1.1`,
  moon: "M13 9.8A5.6 5.6 0 0 1 6.2 3 5.4 5.4 0 1 0 13 9.8z",
  auto: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M8 2.2v11.6M8 5h4.9M8 8h5.8M8 11h4.9",
  pin: "M6 2h4l-.6 5 2.6 2.5H4L6.6 7zM8 9.5V14",
  check: "M2.8 8.4 6.3 12 13.2 4.4",
  close: "M4 4l8 8M12 4l-8 8",
  swap: "M5 2.5 2 5.5l3 3M2 5.5h10M11 7.5l3 3-3 3M14 10.5H4",
  drop: "M8 2v8M4.8 7 8 10.2 11.2 7M2.5 11v2.8h11V11",
  summary: "M2.5 3.5h11M2.5 8h11M2.5 12.5h6.5",
  timeline: "M1.8 13.5 5.5 6l3 4 3-7 2.7 10.5z",
  code: "M5.5 4 2 8l3.5 4M10.5 4 14 8l-3.5 4",
  allocator: "M2 3h12v4H2zM2 9.5h12v4H2zM6 3v4M10 9.5v4",
  sliders: "M2 5h6.5M11.5 5H14M10 3.4v3.2M2 11h2.5M7.5 11H14M6 9.4v3.2",
  ranks: "M2.5 13.5V9M6.2 13.5V5M9.8 13.5V7.5M13.5 13.5v-11",
  compare: "M6 2.5v11M10 2.5v11M6 5H2M6 8H2M14 5h-4M14 11h-4",
  share: "M8 10V2.2M5 5l3-3 3 3M3 8v5.8h10V8",
  gpu: "M2 4h12v8H2zM5 6.5h6v3H5zM4.5 12v2M8 12v2M11.5 12v2",
  more: "M3.2 8h.2M7.9 8h.2M12.6 8h.2",
  error: "M5.3 1.8h5.4l3.5 3.5v5.4l-3.5 3.5H5.3l-3.5-3.5V5.3zM8 4.6v4M8 10.8v.6",
  note: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M8 7v4M8 4.6v.6",
  found: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M5 8.2l2.2 2.2L11 6",
  about: "M2.5 9c2-3 4-3 5.5-1s3.5 2 5.5-1",
  chart: "M2 2.5v11h12M4 11l3-5 3 2.5 4-5",
  warning: "M8 2.3 14.3 13.5H1.7zM8 6.5v3.4M8 11.4v.6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
