//! Random names: of keys, and of elements of collections.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::collection::Span;
use crate::command::{Context, Opened, is_word};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, said};
use crate::reply::{Protocol, Reply};

/// Elements of larger collections do not all have the same chance: that would take going through them.
const FAIR: usize = 1024;

/// Steps that a draw goes on from where it lands, at most.
pub(super) const STEPS: usize = 16;

/// Elements that a client gets at most that may come twice.
const MOST_DRAWS: u64 = 1 << 20;

/// Bytes of such elements, at most: all of them are in memory at once.
const MOST_DRAWN_BYTES: usize = 512 << 20;

/// Draws for each different element, before all are gone through.
const PATIENCE: usize = 4;

/// A place between two names, by their first bytes that differ.
pub(super) fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
    let shared = first.iter().zip(last).take_while(|(left, right)| left == right).count();
    let from = first.get(shared).copied().unwrap_or(0);
    let to = last.get(shared).copied().unwrap_or(0).max(from);
    let mut place = first[..shared].to_vec();
    place.push(fastrand::u8(from..=to));
    place.extend(std::iter::repeat_with(|| fastrand::u8(..)).take(7));
    place
}

/// How many elements a client wants, and whether a word follows that asks for what belongs to them.
pub(super) fn parse_count(wanted: &Bytes, rest: &[Bytes], word: &str) -> Result<(i64, bool), Refusal> {
    let wanted = parse_integer(wanted).ok_or(NOT_AN_INTEGER)?;
    if wanted == i64::MIN {
        return Err(said(format!("ERR value is out of range, value must between {} and {}", -i64::MAX, i64::MAX)));
    }
    let with_more = match rest {
        [] => false,
        [option] if is_word(option, word) => true,
        _ => return Err(SYNTAX),
    };
    if with_more && wanted.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(said("ERR value is out of range".into()));
    }
    Ok((wanted, with_more))
}

/// Names and values of random elements: so many different ones, or, if the number is negative, so many of which some may be the
/// same. `span` is all of the collection that counts.
pub(super) fn draw(
    context: &mut Context<'_, '_>,
    opened: &Opened,
    span: &Span,
    wanted: i64,
) -> Result<Vec<(Bytes, Bytes)>, Refusal> {
    let (most, size) = (wanted.unsigned_abs(), opened.count());
    if wanted < 0 && most > MOST_DRAWS {
        return Err(said(format!("ERR value is out of range: at most {MOST_DRAWS} elements that may be the same")));
    }
    let distinct = usize::try_from(most).unwrap_or(usize::MAX).min(size);
    if size > FAIR && (wanted < 0 || distinct < size / 2) {
        return draw_by_place(context, opened, span, if wanted < 0 { most as usize } else { distinct }, wanted < 0);
    }
    let mut all = Vec::with_capacity(size);
    context.space.elements.visit(opened.owner(), span, |name, value| {
        all.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
        true
    })?;
    if wanted < 0 {
        let mut drawn = Drawn::default();
        for _ in 0..most {
            fastrand::choice(&all).cloned().map_or(Ok(()), |element| drawn.add(element))?;
        }
        return Ok(drawn.elements);
    }
    if distinct < all.len() {
        fastrand::shuffle(&mut all);
        all.truncate(distinct);
    }
    Ok(all)
}

/// Elements of which some may be the same.
#[derive(Default)]
struct Drawn {
    elements: Vec<(Bytes, Bytes)>,
    bytes: usize,
}

impl Drawn {
    fn add(&mut self, element: (Bytes, Bytes)) -> Result<(), Refusal> {
        self.bytes += element.0.len() + element.1.len();
        if self.bytes > MOST_DRAWN_BYTES {
            let text = format!("ERR value is out of range: so many elements take more than {MOST_DRAWN_BYTES} bytes");
            return Err(said(text));
        }
        self.elements.push(element);
        Ok(())
    }
}

/// [`draw`] from a collection that is too large to go through.
fn draw_by_place(
    context: &mut Context<'_, '_>,
    opened: &Opened,
    span: &Span,
    wanted: usize,
    may_repeat: bool,
) -> Result<Vec<(Bytes, Bytes)>, Refusal> {
    let end = |is_backward| {
        let mut end = Vec::new();
        let names = Span { is_backward, values: false, ..span.clone() };
        context.space.elements.visit(opened.owner(), &names, |name, _| {
            end = name.to_vec();
            false
        })?;
        Ok::<_, Refusal>(end)
    };
    let (first, last) = (end(false)?, end(true)?);
    let (mut drawn, mut different) = (Drawn::default(), BTreeMap::new());
    for _ in 0..if may_repeat { wanted } else { wanted.saturating_mul(PATIENCE) } {
        let place = between(&first, &last).max(first.clone());
        let mut left = fastrand::usize(1..=STEPS);
        let mut found = None;
        for from in [place, first.clone()] {
            let rest = Span { from: Bound::Included(from), ..span.clone() };
            context.space.elements.visit(opened.owner(), &rest, |name, value| {
                found = Some((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
                left -= 1;
                left > 0
            })?;
            if found.is_some() {
                break;
            }
        }
        match (found, may_repeat) {
            (Some(found), true) => drawn.add(found)?,
            (found, _) => different.extend(found),
        }
        if different.len() == wanted {
            break;
        }
    }
    if !may_repeat && different.len() < wanted {
        // Names that lie close together are met again and again: some of the others must do.
        context.space.elements.visit(opened.owner(), span, |name, value| {
            different.insert(Bytes::copy_from_slice(name), Bytes::copy_from_slice(value));
            different.len() < wanted
        })?;
    }
    drawn.elements.extend(different);
    Ok(drawn.elements)
}

/// The reply to a client that asked for elements, and maybe for what belongs to each.
pub(super) fn reply(context: &Context<'_, '_>, pairs: impl Iterator<Item = (Reply, Reply)>, with_more: bool) -> Reply {
    Reply::Array(match (with_more, context.session.protocol) {
        (false, _) => pairs.map(|(name, _)| name).collect(),
        (true, Protocol::Resp2) => pairs.flat_map(|(name, more)| [name, more]).collect(),
        (true, Protocol::Resp3) => pairs.map(|(name, more)| Reply::Array(vec![name, more])).collect(),
    })
}
