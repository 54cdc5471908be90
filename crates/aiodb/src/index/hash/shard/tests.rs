//! Tests of the table alone: its invariants, its ends and its sizes.

use super::*;

const TAG_MAX: u64 = (1 << TAG_BITS) - 1;

impl Shard {
    /// Fails unless the table is as the module's first comment says.
    pub(in super::super) fn assert_sound(&self) {
        let mut previous: Option<(usize, u64)> = None;
        let mut count = 0;
        for position in (0..self.capacity as usize).filter(|&position| self.low()[position] != EMPTY) {
            let tag = self.slot(position).tag();
            assert!(self.home(tag) <= position, "an entry in front of its home");
            let gap = previous.is_none_or(|(behind, _)| behind + 1 < position);
            assert!(!gap || self.home(tag) == position, "a gap between an entry and its home");
            assert!(previous.is_none_or(|(_, other)| other <= tag), "tags out of order");
            previous = Some((position, tag));
            count += 1;
        }
        assert_eq!(count, self.count);
        assert!(self.len() * 100 <= self.homes * LOAD_MAX, "{count} entries in {} homes", self.homes);
    }

    fn granules(&self, tag: u64) -> Vec<u64> {
        self.run(tag).map(|position| self.slot(position).granule()).collect()
    }

    fn push_front(&mut self, tag: u64, granule: u64) {
        self.insert(self.run(tag).start, Slot::new(tag, granule, 1));
    }
}

#[test]
fn an_empty_table_has_no_memory_and_finds_nothing() {
    let shard = Shard::default();
    assert_eq!(shard.memory_bytes(), 0);
    for tag in [0, 1, TAG_MAX] {
        assert!(shard.run(tag).is_empty());
    }
}

#[test]
fn runs_longer_than_the_slack_keep_their_order_at_both_ends() {
    for tag in [0, TAG_MAX] {
        let mut shard = Shard::default();
        let length = 10 * SLACK_MAX as u64;
        for granule in 0..length {
            shard.push_front(tag, granule);
            shard.assert_sound();
        }
        assert_eq!(shard.granules(tag), (0..length).rev().collect::<Vec<_>>());
        assert_eq!(shard.granules(TAG_MAX - tag), []);
        while shard.len() > 0 {
            shard.remove(shard.run(tag).start);
            shard.assert_sound();
        }
        assert_eq!(shard.memory_bytes(), 0);
    }
}

#[test]
fn a_run_at_the_highest_tag_of_a_large_table_outgrows_the_slack() {
    let mut shard = Shard::default();
    for tag in 0..4096 {
        shard.push_front(tag << 15, tag);
    }
    let homes = shard.homes;
    for granule in 0..SLACK_MAX as u64 + 8 {
        shard.push_front(TAG_MAX, granule);
    }
    shard.assert_sound();
    assert!(
        shard.capacity as usize - shard.homes > SLACK_MAX,
        "the run fitted into the usual slack: it tested nothing"
    );
    assert!(shard.homes <= homes + homes / 4, "a lack of slack made the table grow");
    assert_eq!(shard.granules(TAG_MAX).len(), SLACK_MAX + 8);
}

#[test]
fn memory_follows_the_number_of_entries_up_and_down() {
    let mut shard = Shard::default();
    let mut random = fastrand::Rng::with_seed(7);
    let tags: Vec<u64> = (0..20_000).map(|_| random.u64(0..=TAG_MAX)).collect();
    for (granule, tag) in tags.iter().enumerate() {
        shard.push_front(*tag, granule as u64);
    }
    shard.assert_sound();
    assert!(shard.memory_bytes() < 12 * tags.len(), "{} bytes", shard.memory_bytes());
    for (granule, tag) in tags.iter().enumerate().skip(1000) {
        shard.remove(shard.find(*tag, granule as u64).unwrap());
    }
    shard.assert_sound();
    assert_eq!(shard.len(), 1000);
    assert!(shard.memory_bytes() < 24 * 1000, "{} bytes", shard.memory_bytes());
    assert!(tags[..1000].iter().enumerate().all(|(granule, tag)| shard.find(*tag, granule as u64).is_some()));
}
