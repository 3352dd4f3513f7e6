declare module "*?worker&url" {
  /** The address of the worker's script. */
  const address: string;
  export default address;
}
