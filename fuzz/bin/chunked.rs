//! libFuzzer's door to [`fuzz::chunked`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::chunked(data));
