//! libFuzzer's door to [`fuzz::pipeline`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::pipeline(data));
