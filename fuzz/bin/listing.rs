//! libFuzzer's door to [`fuzz::listing`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::listing(data));
