//! A record as it was read, before a key and a value are looked for in it.

/// What reading one record came to; its bytes stay with the reader.
pub enum Raw {
    /// A record.
    Record,
    /// An empty line.
    Blank,
    /// No record, and why.
    Bad(String),
    /// The end of the input.
    End,
}

/// Why a line is bad that is longer than allowed.
pub fn too_long(max_bytes: u64) -> String {
    format!("longer than {max_bytes} bytes (--max-line-bytes allows more)")
}
