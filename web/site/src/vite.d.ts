declare module "*?worker&url" {
  /** Where Vite has put the worker's script. */
  const address: string;
  export default address;
}
