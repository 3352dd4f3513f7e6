//! See `vramscope_fuzz::reference`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vramscope_fuzz::reference(data));
