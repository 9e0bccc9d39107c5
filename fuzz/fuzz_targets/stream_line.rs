#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| oarlock_testkit::fuzz::stream_line(data));
