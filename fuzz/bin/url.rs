//! libFuzzer's door to [`fuzz::url`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::url(data));
