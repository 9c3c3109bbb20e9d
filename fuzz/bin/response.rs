//! libFuzzer's door to [`fuzz::response`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::response(data));
