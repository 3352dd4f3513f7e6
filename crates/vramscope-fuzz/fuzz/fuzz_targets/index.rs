//! See `vramscope_fuzz::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::index(data));
