//! Epochs in thousands of orders that `shuttle` chooses.

use std::sync::Arc;

use super::Epochs;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const GONE: u64 = u64::MAX;
const SLOTS: usize = 6;

/// Readers follow a reference to a slot, while a writer moves the reference on and destroys the slots that it has left
/// as soon as the epochs allow it.
fn follow_while_slots_are_destroyed() {
    let slots: Arc<[AtomicU64; SLOTS]> = Arc::new(std::array::from_fn(|slot| AtomicU64::new(slot as u64)));
    let (epochs, current) = (Arc::new(Epochs::default()), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (slots, epochs, current) = (Arc::clone(&slots), Arc::clone(&epochs), Arc::clone(&current));
            shuttle::thread::spawn(move || {
                for _ in 0..4 {
                    let guard = epochs.pin();
                    let slot = current.load(Ordering::SeqCst);
                    assert_eq!(
                        slots[slot].load(Ordering::SeqCst),
                        slot as u64,
                        "a counted reader finds the slot that it was led to"
                    );
                    drop(guard);
                }
            })
        })
        .collect();
    // Any thread may move to the next epoch.
    let advancing = shuttle::thread::spawn({
        let epochs = Arc::clone(&epochs);
        move || {
            for _ in 0..2 * SLOTS {
                epochs.try_advance();
            }
        }
    });
    let mut retired = Vec::new();
    for slot in 1..SLOTS {
        current.store(slot, Ordering::SeqCst);
        retired.push((slot - 1, epochs.epoch()));
        epochs.try_advance();
        retired.retain(|(slot, epoch)| {
            let free = epoch + 2 <= epochs.epoch();
            if free {
                slots[*slot].store(GONE, Ordering::SeqCst);
            }
            !free
        });
    }
    readers.into_iter().chain([advancing]).for_each(|reader| reader.join().expect("no thread panics"));
    epochs.try_advance();
    epochs.try_advance();
    assert!(retired.iter().all(|(_, epoch)| epoch + 2 <= epochs.epoch()), "without readers everything becomes free");
}

#[test]
fn interleavings_of_pins() {
    shuttle::check_random(follow_while_slots_are_destroyed, 1_000);
    shuttle::check_pct(follow_while_slots_are_destroyed, 1_000, 3);
}
