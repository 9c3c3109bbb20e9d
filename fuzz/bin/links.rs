//! libFuzzer's door to [`fuzz::links`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::links(data));
