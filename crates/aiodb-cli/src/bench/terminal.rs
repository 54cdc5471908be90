//! What a benchmark says while it runs.

/// Says on the standard error output what is going on; the standard output is for results.
pub(crate) fn progress(message: &str) {
    eprintln!("bench: {message}");
}
