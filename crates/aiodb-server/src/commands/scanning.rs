//! What SCAN has in common with the scans of collections.

use bytes::Bytes;

use crate::collection::Span;
use crate::command::{Context, Opened, is_word};
use crate::glob;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::Reply;

/// What is looked at in one call unless the client says otherwise.
const COUNT: usize = 10;

/// Collections with so many elements are given as a whole, as Redis gives its small ones.
const SMALL: usize = 128;

/// What a scan is to do.
pub(super) struct ScanOptions<'a> {
    pub(super) most: usize,
    pub(super) pattern: Option<&'a Bytes>,
    pub(super) kind: Option<&'a Bytes>,
}

impl<'a> ScanOptions<'a> {
    /// Reads options; SCAN alone may ask for a type.
    pub(super) fn parse(options: &'a [Bytes], may_ask_type: bool) -> Result<ScanOptions<'a>, Refusal> {
        let mut parsed = ScanOptions { most: COUNT, pattern: None, kind: None };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or(SYNTAX)?;
            if is_word(option, "count") {
                let number = parse_integer(value).ok_or(NOT_AN_INTEGER)?;
                parsed.most = usize::try_from(number).ok().filter(|most| *most > 0).ok_or(SYNTAX)?;
            } else if is_word(option, "match") {
                parsed.pattern = Some(value);
            } else if may_ask_type && is_word(option, "type") {
                parsed.kind = Some(value);
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(parsed)
    }

    /// Whether a name is as it should be.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name))
    }
}

/// The cursor that a client gives, read as C's `strtoul` does: nothing is 0, and a sign may come first.
pub(super) fn parse_cursor(cursor: &Bytes) -> Result<u64, Refusal> {
    let invalid = words("ERR invalid cursor");
    let (is_negative, digits) = match &cursor[..] {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid);
    }
    let number: Option<u64> = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    number.map(|number| if is_negative { number.wrapping_neg() } else { number }).ok_or(invalid)
}

/// The name after which a cursor's scan goes on; none for the first one.
pub(super) fn place(context: &Context<'_, '_>, cursor: u64) -> Result<Option<Bytes>, Refusal> {
    let forgotten = words("ERR this cursor is not known, or no longer: begin the scan again with cursor 0");
    if cursor == 0 { Ok(None) } else { context.server.cursors.find(cursor).map(Some).ok_or(forgotten) }
}

/// What one call of a collection's scan gives.
pub(super) struct Page {
    /// The cursor of the next call; 0 after the last one.
    pub(super) next: u64,
    /// Members and values.
    pub(super) elements: Vec<(Bytes, Bytes)>,
}

/// The next elements of a collection; a missing one has none, whatever the options are.
pub(super) fn page(
    context: &mut Context<'_, '_>,
    opened: Option<&Opened>,
    cursor: u64,
    options: &[Bytes],
    span: Span,
) -> Result<Page, Refusal> {
    let Some(opened) = opened else { return Ok(Page { next: 0, elements: Vec::new() }) };
    let options = ScanOptions::parse(options, false)?;
    let most = if opened.count() <= SMALL { usize::MAX } else { options.most };
    let after = place(context, cursor)?;
    let span = match after {
        None => span,
        Some(name) => Span { from: std::ops::Bound::Excluded(name.to_vec()), ..span },
    };
    let (mut elements, mut looked_at, mut last) = (Vec::new(), 0, Bytes::new());
    context.space.elements.visit(opened.owner(), &span, |name, value| {
        let name = Bytes::copy_from_slice(name);
        let member = opened.entry.value.kind.member_of(&name);
        if options.matches(&member) {
            elements.push((member, Bytes::copy_from_slice(value)));
        }
        looked_at += 1;
        last = name;
        looked_at < most
    })?;
    let next = if looked_at < most { 0 } else { context.server.cursors.remember(last) };
    Ok(Page { next, elements })
}

/// The reply of a scan.
pub(super) fn reply(next: u64, found: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::Bulk(next.to_string().into()), Reply::Array(found)])
}
