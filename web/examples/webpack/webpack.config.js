// vramscope needs no option: webpack finds the worker and the wasm files. The rule copies the page.
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
