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
  warning: "M8 2.3 14.3 13.5H1.7zM8 6.5v3.4M8 11.4v.6",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
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
