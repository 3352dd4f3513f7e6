// The start of a thread, in the script of wasm-bindgen-rayon: its end is told.
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
    new BroadcastChannel(alarm).postMessage({ words, panic, trapped, bytes: memory.buffer.byteLength, full });
    throw error;
  }
