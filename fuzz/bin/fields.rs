//! libFuzzer's door to [`fuzz::fields`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fields(data));
