// Nothing is here for vramscope: webpack finds its worker and its wasm by itself. The rule copies
// the page.
export default {
  mode: "production",
  entry: ["./index.html", "./style.css", "./main.js"],
  module: {
    rules: [
      { test: /\.(html|css)$/, type: "asset/resource", generator: { filename: "[name][ext]" } },
    ],
  },
  performance: { hints: false },
};
