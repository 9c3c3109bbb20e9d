//! libFuzzer's door to [`fuzz::coding`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::coding(data));
