// The worker's script as text: `npm run inline` writes it and bundles it into `inline.js`.
declare module "*/worker.txt" {
  const script: string;
  export default script;
}
