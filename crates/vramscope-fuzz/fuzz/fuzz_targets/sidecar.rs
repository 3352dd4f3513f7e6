//! See `vramscope_fuzz::sidecar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::sidecar(data));
