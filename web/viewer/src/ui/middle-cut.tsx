// A name that loses its middle where it does not fit: the start says which run it is, the end which
// file.

/** Characters of the end that stay. */
const END = 12;

export function MiddleCut({ text }: { text: string }) {
  if (text.length <= 2 * END) return <>{text}</>;
  return (
    <span class="middle-cut">
      <span>{text.slice(0, -END)}</span>
      <span>{text.slice(-END)}</span>
    </span>
  );
}
