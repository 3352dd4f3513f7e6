// Starts a thread in the script of wasm-bindgen-rayon, and reports a crash.
  let panic = '';
  const report = console.error.bind(console);
  console.error = (...words) => {
    panic = String(words[0]).split('\n\nStack:')[0];
    report(...words);
  };
  try {
    pkg.wbg_rayon_start_worker(receiver);
  } catch (error) {
    const { memory } = init;
    let full = false;
    try {
      memory.grow(256);
    } catch {
      full = true;
    }
    const trapped = error instanceof WebAssembly.RuntimeError;
    const words = String(error?.message ?? error);
    const bytes = memory.buffer.byteLength;
    new BroadcastChannel(alarm).postMessage({ words, panic, trapped, bytes, full });
    throw error;
  }
