#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| aiodb::fuzzing::fuzz("run_manifest", input));
