//! See `memstrata_fuzz::load`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| memstrata_fuzz::load(data));
