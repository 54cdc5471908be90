//! Collections: what the record of their key says of them, and under which keys their elements lie.
//!
//! The record has, behind its kind and time: the collection's number (8), how many elements there are (8), and the position
//! of a list's first element (8, signed; 0 in others), all little-endian.
//!
//! The elements of a database lie in a table of their own, whose keys begin with a byte that says what they are:
//!
//! | key | value |
//! | --- | ----- |
//! | `00` | numbers below this one may be in use (8, little-endian) |
//! | `01`, when a collection expires (8, big-endian), its number (8, big-endian) | the stored key that has it |
//! | `01`, when a string expires (8, big-endian), eight zero bytes, the stored key that has it | nothing |
//! | `02`, the number of a collection (8, big-endian), the name of an element | see below |
//!
//! The name of a hash's element is the field, and its value is there. That of a set's is the member, without a value. That of a
//! list's is its position (8, big-endian, with the sign bit turned over), and the element is the value. A member of a sorted
//! set has two elements: `00` and the member, whose value is the score (8, little-endian), and `01`, the score in a form in whose
//! order scores are (8, big-endian, `score.rs`) and the member, without a value.
//!
//! A number is given out once. What lies under the number of a collection that is gone is never seen again, and one deleted
//! range takes it away.

use std::ops::{Bound, Range};

use bytes::Bytes;

use crate::locks::Database;
use crate::score::{order_of, score_of};

const NUMBERS: u8 = 0;
const EXPIRING: u8 = 1;
const ELEMENTS: u8 = 2;

/// Bytes of the key of a row of what expires, before the name of a string.
const ROW_BYTES: usize = 17;

/// How the names begin under which a sorted set has its members by themselves, and by their ranks; and what comes after those.
const BY_MEMBER: u8 = 0;
const BY_RANK: u8 = 1;
const AFTER_RANKS: u8 = 2;

/// What a collection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash = 1,
    Set = 2,
    List = 3,
    SortedSet = 4,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Hash, Kind::Set, Kind::List, Kind::SortedSet];

    /// The kind with this number in a record.
    pub(crate) fn of_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The name of the element that a command calls so.
    pub(crate) fn element_name(self, member: &Bytes) -> Bytes {
        match self {
            Kind::SortedSet => member_name(member),
            _ => member.clone(),
        }
    }

    /// The opposite of [`Kind::element_name`].
    pub(crate) fn member_of(self, name: &Bytes) -> Bytes {
        match self {
            Kind::SortedSet => name.slice(1..),
            _ => name.clone(),
        }
    }

    /// What TYPE says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::List => "list",
            Kind::SortedSet => "zset",
        }
    }
}

/// A collection as the record of its key has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) kind: Kind,
    /// No other collection of the database has or had it.
    pub(crate) number: u64,
    /// Elements; never 0 in a record.
    pub(crate) count: u64,
    /// The position of a list's first element; the others follow without gaps.
    pub(crate) first: i64,
}

impl Collection {
    /// Bytes that it takes in a record.
    pub(crate) const BYTES: usize = 24;

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
    }

    /// `None` if these bytes are no collection.
    pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Option<Collection> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let [number, count, first] = words else { return None };
        let (number, count) = (u64::from_le_bytes(*number), u64::from_le_bytes(*count));
        Some(Collection { kind, number, count, first: i64::from_le_bytes(*first) })
    }
}

/// A collection, as its elements know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) database: Database,
    pub(crate) number: u64,
}

impl Owner {
    /// The stored key of an element.
    pub(crate) fn element_key(self, name: &[u8]) -> Vec<u8> {
        [&self.prefix()[..], name].concat()
    }

    /// How the stored keys of all elements begin.
    pub(crate) fn prefix(self) -> [u8; 9] {
        with_number(ELEMENTS, self.number)
    }

    /// The first stored key after those of all elements.
    pub(crate) fn end(self) -> [u8; 9] {
        // Numbers are given out from 1 on, one by one, and never reach the greatest.
        with_number(ELEMENTS, self.number + 1)
    }
}

/// The key of the row with the numbers that are in use.
pub(crate) const NUMBERS_KEY: [u8; 1] = [NUMBERS];

/// The first key of all that a database loses when it is emptied.
pub(crate) const CONTENTS_KEY: [u8; 1] = [EXPIRING];

/// The key of the row of a collection that expires.
pub(crate) fn expiring_key(at_ms: u64, number: u64) -> Vec<u8> {
    [&with_number(EXPIRING, at_ms)[..], &number.to_be_bytes()].concat()
}

/// The key of the row of a string that expires under this stored key. No collection has the number 0.
pub(crate) fn expiring_string_key(at_ms: u64, stored: &[u8]) -> Vec<u8> {
    [&expiring_key(at_ms, 0), stored].concat()
}

/// The stored key that expires by this row.
pub(crate) fn expiring_name<'a>(key: &'a [u8], value: &'a [u8]) -> &'a [u8] {
    match expiring_number(key) {
        Some(_) => value,
        None => key.get(ROW_BYTES..).unwrap_or_default(),
    }
}

/// The number of the collection that expires by this row; `None` if it is a string.
pub(crate) fn expiring_number(key: &[u8]) -> Option<u64> {
    let number = key.get(ROW_BYTES - 8..)?.first_chunk()?;
    Some(u64::from_be_bytes(*number)).filter(|number| *number != 0)
}

/// When a key expires whose row this is; `None` if it is another row.
pub(crate) fn expiring_ms(key: &[u8]) -> Option<u64> {
    let (at_ms, _) = key.strip_prefix(&[EXPIRING])?.split_first_chunk()?;
    Some(u64::from_be_bytes(*at_ms))
}

/// The rows from the first to before the second are those of keys that expire at this time or later.
pub(crate) fn expiring_keys(from_ms: u64) -> (Vec<u8>, Vec<u8>) {
    (expiring_key(from_ms, 0), vec![EXPIRING + 1])
}

fn with_number(kind: u8, number: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The name of a list's element: its position, so that the order of names is that of positions.
pub(crate) fn position_name(position: i64) -> Bytes {
    Bytes::copy_from_slice(&(position as u64 ^ 1 << 63).to_be_bytes())
}

/// The name of a sorted set's element that has a member's score.
pub(crate) fn member_name(member: &[u8]) -> Bytes {
    [&[BY_MEMBER], member].concat().into()
}

/// The name of a sorted set's element in whose order members are: by their scores, and those with the same by themselves.
pub(crate) fn ranked_name(score: f64, member: &[u8]) -> Bytes {
    [&with_number(BY_RANK, order_of(score))[..], member].concat().into()
}

/// The opposite of [`ranked_name`]; `None` of another name.
pub(crate) fn ranked_member(name: &[u8]) -> Option<(&[u8], f64)> {
    let (order, member) = name.strip_prefix(&[BY_RANK])?.split_first_chunk()?;
    Some((member, score_of(u64::from_be_bytes(*order))))
}

/// Elements of a collection from one name to another, in this or the opposite order.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
    pub(crate) is_backward: bool,
    /// Whether values are needed; without, they may come back empty.
    pub(crate) values: bool,
    /// Whether the elements have values.
    pub(crate) has_values: bool,
}

impl Span {
    /// All elements with their values.
    pub(crate) const ALL: Span =
        Span { from: Bound::Unbounded, to: Bound::Unbounded, is_backward: false, values: true, has_values: true };

    /// All names.
    pub(crate) const NAMES: Span = Span { values: false, ..Span::ALL };

    /// All members of a set.
    pub(crate) const MEMBERS: Span = Span { has_values: false, ..Span::NAMES };

    /// Whether it is all that all elements have, in the order of their names.
    pub(crate) fn is_all(&self) -> bool {
        let is_open = matches!((&self.from, &self.to), (Bound::Unbounded, Bound::Unbounded));
        is_open && !self.is_backward && (self.values || !self.has_values)
    }

    /// The elements of a list from a position to before another.
    pub(crate) fn of_positions(positions: Range<i64>, is_backward: bool) -> Span {
        let [from, to] = [positions.start, positions.end].map(|position| position_name(position).to_vec());
        Span { from: Bound::Included(from), to: Bound::Excluded(to), is_backward, ..Span::ALL }
    }

    /// The members of a sorted set with their scores, in no order of meaning.
    pub(crate) fn by_member() -> Span {
        Span { from: Bound::Included(vec![BY_MEMBER]), to: Bound::Excluded(vec![BY_RANK]), ..Span::ALL }
    }

    /// The names of a sorted set's members by rank.
    pub(crate) fn by_rank() -> Span {
        Span { from: Bound::Included(vec![BY_RANK]), to: Bound::Excluded(vec![AFTER_RANKS]), ..Span::NAMES }
    }

    /// [`Span::by_rank`] from one score to another.
    pub(crate) fn of_scores(min: Bound<f64>, max: Bound<f64>) -> Span {
        let all = Span::by_rank();
        // The first name with this score, and that with the next one.
        let first = |score| with_number(BY_RANK, order_of(score)).to_vec();
        let after = |score| with_number(BY_RANK, order_of(score) + 1).to_vec();
        let from = match min {
            Bound::Unbounded => all.from,
            Bound::Included(score) => Bound::Included(first(score)),
            Bound::Excluded(score) => Bound::Included(after(score)),
        };
        let to = match max {
            Bound::Unbounded => all.to,
            Bound::Included(score) => Bound::Excluded(after(score)),
            Bound::Excluded(score) => Bound::Excluded(first(score)),
        };
        Span { from, to, ..Span::NAMES }
    }

    /// [`Span::by_rank`] of those with a score, from one member to another.
    pub(crate) fn of_members(score: f64, min: Bound<&[u8]>, max: Bound<&[u8]>) -> Span {
        let all = Span::of_scores(Bound::Included(score), Bound::Included(score));
        let bound = |bound: Bound<&[u8]>, open| match bound.map(|member| ranked_name(score, member).to_vec()) {
            Bound::Unbounded => open,
            bound => bound,
        };
        Span { from: bound(min, all.from), to: bound(max, all.to), ..Span::NAMES }
    }

    /// Whether no name can be in it.
    pub(crate) fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
            _ => false,
        }
    }
}
