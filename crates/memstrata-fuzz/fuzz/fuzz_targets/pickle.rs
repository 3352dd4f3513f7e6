//! See `memstrata_fuzz::pickle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| memstrata_fuzz::pickle(data));
