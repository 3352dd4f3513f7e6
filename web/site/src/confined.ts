/**
 * A blob address that imports the worker's script. A worker from a normal address has the content
 * security policy of its own response, and static hosts send none. A worker from a blob has the
 * page's policy, so it cannot send data anywhere.
 */
export function confined(address: string): string {
  const script = `import ${JSON.stringify(new URL(address, document.baseURI).href)};`;
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
}
