//! libFuzzer's door to [`fuzz::exchange`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::exchange(data));
