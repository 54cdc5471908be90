use super::*;

/// What is given back to the system is whole pages: else it would take entries of other blocks along.
#[test]
fn blocks_are_whole_pages_of_the_system() {
    for page_bytes in [4096, 16 << 10, 64 << 10] {
        for budget_bytes in (0..40).flat_map(|power| [1, 3, 5].map(|part| (part << power) / 4)) {
            let (count, block_bytes) = blocks_of(budget_bytes, page_bytes);
            assert!(block_bytes.is_multiple_of(page_bytes) && count * block_bytes <= budget_bytes);
            assert!(count >= MIN_BLOCKS || block_bytes == 0, "{count} blocks of {block_bytes} bytes");
            assert!(block_bytes > 0 || budget_bytes < MIN_BLOCKS * page_bytes, "there is room in {budget_bytes} bytes");
        }
    }
    assert_eq!(blocks_of(1 << 20, 4096), (64, 16 << 10));
    assert_eq!(blocks_of(1 << 20, 64 << 10), (16, 64 << 10));
}
