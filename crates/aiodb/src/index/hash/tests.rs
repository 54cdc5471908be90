//! The index against a model, and the bytes of its checkpoint.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::*;

const SEGMENT_BYTES: u64 = 64 << 10;

/// The index and its expected contents: by hash, places with their ages, newest first.
struct Checked {
    index: HashIndex,
    model: BTreeMap<u64, Vec<(Location, u64)>>,
    /// The age of every place that was ever used. Places are never used again here.
    ages: Vec<u64>,
    random: fastrand::Rng,
    hashes: Vec<u64>,
}

impl Checked {
    fn new(seed: u64, hashes: Vec<u64>) -> Checked {
        let random = fastrand::Rng::with_seed(seed);
        Checked { index: HashIndex::new(SEGMENT_BYTES), model: BTreeMap::new(), ages: Vec::new(), random, hashes }
    }

    /// A new place; now and then it is older than others that are there already.
    fn place(&mut self) -> (Location, u64) {
        let number = self.ages.len() as u64;
        let age = if self.random.u8(..) < 64 { self.random.u64(0..=number) } else { number };
        self.ages.push(age);
        (place(number, self.random.u32(1..=LENGTH_MAX)), age)
    }

    fn hash(&mut self) -> u64 {
        self.hashes[self.random.usize(..self.hashes.len())]
    }

    fn publish(&mut self) {
        let (hash, (location, age)) = (self.hash(), self.place());
        let run = self.model.entry(hash).or_default();
        let rank = run.iter().position(|(_, other)| *other < age).unwrap_or(run.len());
        let expected =
            Published::Inserted { older: run.len() - rank, newer: rank, is_over: false, may_be_below: false };
        run.insert(rank, (bounded(location), age));
        // The second part of an age breaks ties of the first.
        let order = |location: Location| (self.ages[number(location)] / 2, (self.ages[number(location)] % 2) as u32);
        assert_eq!(self.index.publish(hash, location, order), expected);
        assert_eq!(self.index.publish(hash, location, order), Published::AlreadyThere);
    }

    /// A hash and the rank of one of its locations.
    fn existing(&mut self) -> Option<(u64, usize)> {
        let hash = self.hash();
        let run = self.model.get(&hash).filter(|run| !run.is_empty())?;
        Some((hash, self.random.usize(..run.len())))
    }

    fn replace(&mut self) {
        let to = place(self.ages.len() as u64, self.random.u32(1..=LENGTH_MAX));
        let hash = self.hash();
        assert!(self.index.replace(hash, to, to).is_none(), "replaced what was never there");
        if let Some((hash, rank)) = self.existing() {
            let (from, age) = self.model[&hash][rank];
            self.ages.push(age);
            assert!(self.index.replace(hash, Location { length: 1, ..from }, to).is_some());
            self.model.get_mut(&hash).unwrap()[rank].0 = bounded(to);
            assert!(self.index.contains(hash, to) && !self.index.contains(hash, from));
        }
    }

    fn remove(&mut self) {
        if let Some((hash, rank)) = self.existing() {
            let (location, _) = self.model.get_mut(&hash).unwrap().remove(rank);
            assert!(self.index.contains(hash, location));
            assert!(self.index.remove(hash, location));
            assert!(!self.index.contains(hash, location));
            assert!(!self.index.remove(hash, location));
        }
    }

    /// Compares one tag.
    fn compare_one(&mut self) {
        let hash = self.hash();
        let expected: Vec<Location> = self.model.get(&hash).into_iter().flatten().map(|(place, _)| *place).collect();
        assert_eq!(found(&self.index, hash), expected);
    }

    /// Compares everything, and the index with its decoded checkpoint.
    fn compare_all(&self) {
        let copy = HashIndex::new(SEGMENT_BYTES);
        for shard in 0..SHARDS {
            self.index.read(shard).assert_sound();
            let mut bytes = vec![];
            self.index.encode_shard(shard, &mut bytes);
            copy.decode_shard(shard, &bytes).unwrap();
            copy.read(shard).assert_sound();
        }
        let mut expected: Vec<Location> = self.model.values().flatten().map(|(place, _)| *place).collect();
        expected.sort();
        for index in [&self.index, &copy] {
            for (hash, run) in &self.model {
                assert_eq!(found(index, *hash), run.iter().map(|(place, _)| *place).collect::<Vec<_>>());
            }
            let mut all = vec![];
            index.for_each(&mut |location| all.push(location));
            all.sort();
            assert_eq!(all, expected);
            assert_eq!(index.len(), expected.len());
        }
    }

    /// Grows to about `size` locations under mixed operations, shrinks again, and ends empty.
    fn run(&mut self, size: usize) {
        for removals in [20, 200] {
            for _ in 0..2 * size {
                match self.random.u8(..) {
                    chance if chance < removals => self.remove(),
                    chance if chance < 216 => self.publish(),
                    chance if chance < 232 => self.replace(),
                    _ => self.compare_one(),
                }
            }
            self.compare_all();
            assert_eq!(self.index.held.bytes(), self.index.memory_bytes() as u64);
        }
        let mut left: Vec<(u64, Location)> = vec![];
        self.model.iter().for_each(|(hash, run)| left.extend(run.iter().map(|(place, _)| (*hash, *place))));
        self.random.shuffle(&mut left);
        assert!(left.iter().all(|(hash, place)| self.index.remove(*hash, *place)));
        assert!(self.index.is_empty());
        assert_eq!(self.index.memory_bytes(), HashIndex::new(SEGMENT_BYTES).memory_bytes());
        assert_eq!(self.index.held.bytes(), self.index.memory_bytes() as u64);
    }
}

/// The place with this number. Numbers are spread over all granule bits.
fn place(number: u64, length: u32) -> Location {
    let granule = number.reverse_bits() >> (u64::BITS - 20) << 20 | number;
    let (segment, within) = (granule / (SEGMENT_BYTES / 16), granule % (SEGMENT_BYTES / 16));
    Location { segment: segment as u32, offset: within as u32 * 16, length }
}

/// The number of a [`place`].
fn number(location: Location) -> usize {
    let granule = u64::from(location.segment) * (SEGMENT_BYTES / 16) + u64::from(location.offset) / 16;
    granule as usize & ((1 << 20) - 1)
}

fn bounded(location: Location) -> Location {
    Location { length: class_bound(location.length), ..location }
}

fn found(index: &HashIndex, hash: u64) -> Vec<Location> {
    let mut found = SmallVec::new();
    index.lookup(hash, &mut found);
    found.to_vec()
}

/// A hash with the given shard and tag. The index ignores its low bits.
fn hash(shard: u64, tag: u64) -> u64 {
    shard << 54 | tag << 27
}

/// The seed of a random test: random, or `AIODB_TEST_SEED` to replay a failure.
fn seed() -> u64 {
    let seed = std::env::var("AIODB_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("replay with AIODB_TEST_SEED={seed}");
    seed
}

#[test]
fn a_few_tags_with_long_runs_match_the_model() {
    let mut hashes = vec![];
    for shard in [0, 1023] {
        for tag in [0, 1, 2, (1 << 26) - 1, 1 << 26, (1 << 27) - 2, (1 << 27) - 1] {
            hashes.push(hash(shard, tag));
        }
    }
    Checked::new(seed(), hashes).run(4000);
}

#[test]
fn many_tags_with_short_runs_match_the_model() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    // Few shards, so that they grow and shrink many times; some neighbouring tags share a home.
    let hashes = (0..5000).map(|_| hash(random.u64(0..3) * 400, random.u64(..1 << 12) << random.u64(0..16))).collect();
    Checked::new(seed, hashes).run(12_000);
}

#[test]
fn tags_at_the_end_of_a_shard_match_the_model() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let hashes = (0..1000).map(|_| hash(5, (1 << 27) - 1 - random.u64(..1 << 16))).collect();
    Checked::new(seed, hashes).run(6000);
}

#[test]
fn only_the_low_bits_of_a_hash_are_forgotten() {
    let index = HashIndex::new(SEGMENT_BYTES);
    let hashes = [0, 1 << 27, 1 << 53, 1 << 54, 1 << 63, u64::MAX];
    for (number, hash) in hashes.into_iter().enumerate() {
        let published = index.publish(hash, place(number as u64, 64), |_| panic!("no other location to compare with"));
        assert_eq!(published, Published::Inserted { older: 0, newer: 0, is_over: false, may_be_below: false });
    }
    for (number, hash) in hashes.into_iter().enumerate() {
        assert_eq!(found(&index, hash ^ ((1 << 27) - 1)), [place(number as u64, 64)]);
    }
}

#[test]
fn the_first_and_the_last_place_and_length_come_back() {
    for segment_bytes in [4 << 10, 64 << 10, 64 << 20, 4 << 30] {
        let index = HashIndex::new(segment_bytes);
        assert_eq!(index.max_segments() * segment_bytes, 16 << 40);
        let segment = (index.max_segments() - 1) as u32;
        let last = Location { segment, offset: (segment_bytes - 16) as u32, length: LENGTH_MAX };
        let first = Location { segment: 0, offset: 0, length: 0 };
        for (hash, location) in [(0, first), (u64::MAX, last), (1 << 63, last)] {
            index.publish(hash, location, |_| panic!("no other location to compare with"));
            assert!(index.contains(hash, location));
            assert_eq!(found(&index, hash), [bounded(location)]);
        }
    }
}

#[test]
fn size_classes_hold_their_lengths() {
    assert_eq!([1, 64, 65].map(class_bound), [64, 64, 128]);
    assert_eq!([4096, 4097, 4096 + 512, 4096 + 513].map(class_bound), [4096, 4608, 4608, 6656]);
    for kib in [8, 16, 32, 64, 128, 256, 512, 1024] {
        assert_eq!(class_bound((kib << 10) + 64), (kib << 10) + 512, "{kib} KiB");
    }
    assert!(class_bound((1 << 20) + 65_600) <= LENGTH_MAX);
    for length in 0..=LENGTH_MAX {
        let bound = class_bound(length);
        assert!(bound >= length && class_bound(bound) == bound, "{length} bytes");
    }
}

#[test]
#[should_panic(expected = "longer than a hash index can name")]
fn a_longer_record_is_refused() {
    class_bound(LENGTH_MAX + 1);
}

#[test]
#[should_panic(expected = "beyond what a hash index can name")]
fn a_segment_out_of_range_is_refused() {
    let index = HashIndex::new(64 << 20);
    let segment = index.max_segments() as u32;
    index.contains(0, Location { segment, offset: 0, length: 64 });
}

#[test]
fn an_encoded_shard_has_the_documented_bytes() {
    let index = HashIndex::new(SEGMENT_BYTES);
    let location = Location { segment: 0x0abc_def0, offset: 0x1230, length: 4128 };
    index.publish(hash(3, 0x123_4567), location, |_| (0, 0));
    let mut bytes = vec![0xff];
    index.encode_shard(3, &mut bytes);
    // Granule 0xabcdef0123; size class 14; tag 0x1234567 from bit 37 on.
    let low = 0x123_4567_u64 << 37 | 14 << 32 | 0xcdef_0123;
    let expected = [&[0xff], &1_u64.to_le_bytes()[..], &low.to_le_bytes(), &[0xab]].concat();
    assert_eq!(bytes, expected);
}

#[test]
fn bytes_that_are_not_a_shard_are_refused_and_leave_it_empty() {
    let index = HashIndex::new(SEGMENT_BYTES);
    for number in 0..100 {
        index.publish(hash(7, number * 1000), place(number, 64), |_| (0, 0));
    }
    let mut good = vec![];
    index.encode_shard(7, &mut good);
    assert_eq!(index.decode_shard(7, &good), Err("an index shard is loaded into one that is not empty"));

    let empty = HashIndex::new(SEGMENT_BYTES);
    let refuse = |bytes: &[u8]| {
        assert!(empty.decode_shard(7, bytes).is_err());
        assert!(empty.is_empty());
    };
    (0..good.len()).for_each(|length| refuse(&good[..length]));
    refuse(&[&good[..], &[0; 9]].concat());
    refuse(&[&u64::MAX.to_le_bytes(), &good[8..]].concat());
    let mut swapped = good.clone();
    swapped[8..26].rotate_left(9);
    refuse(&swapped);
    let mut unknown_class = good.clone();
    unknown_class[8 + 9 * 50 + 4] &= !0x1f;
    refuse(&unknown_class);
    empty.decode_shard(7, &good).unwrap();
    assert_eq!(empty.len(), 100);
}

#[test]
fn garbage_never_panics_and_what_is_accepted_is_sound() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut accepted = 0;
    for _ in 0..20_000 {
        let count = random.usize(..6);
        let mut bytes = (count as u64).to_le_bytes().to_vec();
        bytes.extend((0..count * 9).map(|_| random.u8(..)));
        let index = HashIndex::new(SEGMENT_BYTES);
        if index.decode_shard(1023, &bytes).is_ok() {
            accepted += 1;
            index.read(1023).assert_sound();
            let mut again = vec![];
            index.encode_shard(1023, &mut again);
            assert_eq!(again, bytes);
            index.for_each(&mut |location| assert!(u64::from(location.segment) < index.max_segments()));
        }
    }
    assert!(accepted > 1000, "the garbage was refused too often to test anything");
}

#[test]
fn threads_see_each_shard_whole() {
    let index = HashIndex::new(SEGMENT_BYTES);
    let target = hash(9, 77);
    index.publish(target, place(0, 64), |_| (0, 0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..20_000 {
                index.publish(hash(9, number * 6007 % (1 << 27)), place(number, 64), |_| (0, 0));
            }
            for number in 1..20_000 {
                assert!(index.remove(hash(9, number * 6007 % (1 << 27)), place(number, 64)));
            }
        });
        while !writer.is_finished() {
            assert_eq!(found(&index, target), [place(0, 64)]);
        }
    });
    assert_eq!(index.len(), 1);
}

/// What lies under a tag that was pulled up from runs: places above a floor.
fn pulled_up() -> (HashIndex, u64) {
    let (index, tag) = (HashIndex::new(SEGMENT_BYTES), hash(7, 700));
    index.set_has_runs();
    for neighbour in [699, 701] {
        index.publish(hash(7, neighbour), place(neighbour, 64), |_| (0, 0));
    }
    index.publish(tag, place(3, 64), |_| (0, 0));
    let mut came = vec![];
    let below = [place(2, 64), place(1, 64)];
    assert_eq!(index.pull_up(tag, &below, false, || false, |_| ()), None, "others are in runs by now");
    let all = index.pull_up(tag, &below, false, || true, |place| came.push(place)).expect("they are in runs still");
    assert_eq!((all.to_vec(), came.to_vec()), ([3, 2, 1].map(|n| place(n, 64)).to_vec(), below.to_vec()));
    (index, tag)
}

#[test]
fn a_floor_ends_look_ups_and_is_no_place() {
    let (index, tag) = pulled_up();
    let mut found = SmallVec::new();
    assert!(index.lookup_over(tag, &mut found, || ()).is_none(), "nothing below counts");
    assert_eq!(found.to_vec(), [3, 2, 1].map(|number| place(number, 64)));
    assert!(index.lookup_over(hash(7, 701), &mut found, || ()).is_some(), "a neighbour has no floor");
    let published = index.publish(tag, place(4, 64), number);
    assert_eq!(published, Published::Inserted { older: 3, newer: 0, is_over: false, may_be_below: false });
    let published = index.publish(hash(7, 702), place(702, 64), |_| (0, 0));
    assert_eq!(published, Published::Inserted { older: 0, newer: 0, is_over: false, may_be_below: true });
    assert_eq!(index.len(), 7);
    // Under a floor nothing more comes to memory.
    let all = index.pull_up(tag, &[place(9, 64)], false, || panic!("it is not asked"), |_| panic!("none comes"));
    assert_eq!(all.map(|all| all.len()), Some(4));
    for number in 1..=4 {
        assert!(index.remove(tag, place(number, 64)));
    }
    assert!(index.lookup_over(tag, &mut found, || ()).is_none() && found.is_empty(), "the floor is left");
    assert_eq!(index.len(), 3);
}

#[test]
fn floors_come_back_from_their_bytes() {
    let (index, tag) = pulled_up();
    let mut bytes = vec![];
    index.encode_shard(7, &mut bytes);
    let copy = HashIndex::new(SEGMENT_BYTES);
    copy.decode_shard(7, &bytes).unwrap();
    copy.set_has_runs();
    let mut found = SmallVec::new();
    assert!(copy.lookup_over(tag, &mut found, || ()).is_none());
    assert_eq!((found.len(), copy.len()), (3, index.len()));
    // A place below a floor is no shard: here the floor comes before the last place of its tag.
    let mut swapped = bytes.clone();
    let floor = (8..bytes.len()).step_by(9).find(|at| bytes[at + 4] & 0x1f == 0).expect("there is a floor");
    swapped[floor - 9..floor + 9].rotate_left(9);
    assert!(HashIndex::new(SEGMENT_BYTES).decode_shard(7, &swapped).is_err());
}

#[test]
fn memory_gives_up_only_what_a_run_has() {
    let (index, tag) = pulled_up();
    let tag_places = |places: &[u64], has_floor| TagPlaces {
        hash: tag,
        places: places.iter().map(|number| place(*number, 64)).collect(),
        has_floor,
    };
    let (is_old, old) = (Cell::new(true), place(2, 64));
    let take_out = |spilled: TagPlaces| {
        let mut taken = 0;
        let unfounded = index.take_out(
            7,
            &[spilled],
            &|place| is_old.get() || place != old,
            |tag| taken += tag.places.len(),
            || (),
        );
        (taken, unfounded)
    };
    // Without its floor, or another place: what is in memory stays above the floor.
    for other in [tag_places(&[2, 1], false), tag_places(&[2, 5], true), tag_places(&[9, 3, 2, 1], true)] {
        assert_eq!(take_out(other), (0, vec![]));
        assert_eq!(found(&index, tag).len(), 3);
    }
    // A record that is not as old has come to the same place, in another life of its segment.
    is_old.set(false);
    assert_eq!(take_out(tag_places(&[2, 1], true)), (0, vec![]));
    is_old.set(true);
    // A longer one.
    assert!(index.replace(tag, place(1, 64), place(1, 300)).is_some());
    assert_eq!(take_out(tag_places(&[2, 1], true)), (0, vec![]));
    assert!(index.replace(tag, place(1, 300), place(1, 64)).is_some());
    assert_eq!(take_out(tag_places(&[2, 1], true)), (2, vec![]));
    assert_eq!(found(&index, tag), [place(3, 64)]);
    // It has no floor any more, so another place must be pulled up first.
    assert_eq!(take_out(tag_places(&[8], false)), (0, vec![tag]));
    assert!(index.pull_up(tag, &[], true, || true, |_| ()).is_some());
    assert_eq!(take_out(tag_places(&[8], false)), (0, vec![]));
    assert_eq!((found(&index, tag), index.len()), (vec![place(3, 64)], 3));
}

/// Its writer may have looked for older places when they were neither in memory nor in a run that counted.
#[test]
fn what_comes_back_under_another_place_is_told() {
    let index = HashIndex::new(SEGMENT_BYTES);
    let [alone, shared] = [1, 2].map(|tag| hash(7, tag));
    index.publish(shared, place(3, 64), number);
    let back = |hash| TagPlaces { hash, places: [place(1, 64)].into_iter().collect(), has_floor: false };
    assert_eq!(index.put_back(7, &[back(alone), back(shared)], |_| (), || ()), [shared]);
    assert_eq!(found(&index, alone), [place(1, 64)]);
    assert_eq!(found(&index, shared), [place(3, 64), place(1, 64)]);
}
