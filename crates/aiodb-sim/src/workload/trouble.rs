//! What besides crashes happens in a run.

/// One kind in a run: two at once would explain each other's damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Errors,
    FullDisk,
    Medium,
    Slow,
}
