//! See `vramscope_fuzz::load`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::load(data));
