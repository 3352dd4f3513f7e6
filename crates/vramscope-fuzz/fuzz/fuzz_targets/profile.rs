//! See `vramscope_fuzz::profile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::profile(data));
