//! libFuzzer's door to [`fuzz::cookies`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cookies(data));
