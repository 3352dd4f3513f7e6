//! See `vramscope_fuzz::pickle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::pickle(data));
