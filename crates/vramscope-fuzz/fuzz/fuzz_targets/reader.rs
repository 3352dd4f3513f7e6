//! See `vramscope_fuzz::reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::reader(data));
