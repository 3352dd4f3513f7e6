//! See `vramscope_fuzz::dataset`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::dataset(data));
