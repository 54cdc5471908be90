//! What is to be said of a key's value: how Redis would keep it, and how much it takes.

use bytes::Bytes;

use super::family::Family;
use crate::collection::{Kind, Span};
use crate::command::Run::{Grouped, Ranged};
use crate::command::{Command, Context, Keys, NO_KEYS, Opened, is_word};
use crate::entry::{Entry, Value};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::{Answer, Reply};

const KEY: Keys = Keys { first: 2, last: 2, step: 1, flags: "RO", ..NO_KEYS };
const OBJECT: Family = Family::new("generic", "");
const OF_OBJECT: Family = OBJECT.categories("@keyspace").flags("readonly").keys(KEY);
const MEMORY: Family = Family::new("server", "");
const USAGE: Family = MEMORY.flags("readonly").keys(KEY).complexity("O(N) where N is the number of samples.");

pub(super) static COMMANDS: &[Command] = &[
    OBJECT.complexity("Depends on subcommand.").container(
        "object",
        "2.2.3",
        "A container for object introspection commands",
        &[
            OF_OBJECT.command(
                "object|encoding",
                3,
                Ranged(encoding),
                "2.2.3",
                "Inspect the internal encoding of a Redis object",
            ),
            OF_OBJECT.command(
                "object|freq",
                3,
                Grouped(frequency),
                "4.0.0",
                "Get the logarithmic access frequency counter of a Redis object",
            ),
            OF_OBJECT.command(
                "object|refcount",
                3,
                Grouped(references),
                "2.2.3",
                "Get the number of references to the value of the key",
            ),
        ],
    ),
    MEMORY.complexity("Depends on subcommand.").container(
        "memory",
        "4.0.0",
        "A container for memory diagnostics commands",
        &[USAGE.command("memory|usage", -3, Ranged(usage), "4.0.0", "Estimate the memory usage of a key")],
    ),
];

/// Redis's settings: collections with more elements, or a longer one, are not kept as one string.
const FEW_FIELDS: usize = 512;
const FEW_MEMBERS: usize = 512;
const FEW_SCORES: usize = 128;
const SHORT: usize = 64;

/// Strings up to this length lie in their object.
const SHORT_STRING: usize = 44;

fn encoding(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let name = &arguments[2];
    let Some(Entry { value, expires_ms }) = context.get(name)? else { return Ok(Reply::Nil) };
    let collection = match value {
        Value::String(value) => return Ok(Reply::text(string_encoding(&value))),
        Value::Collection(collection) => collection,
    };
    let opened = Opened { key: context.key(name), entry: Entry { value: collection, expires_ms } };
    let is_short = |name: &[u8], value: &[u8]| name.len() <= SHORT && value.len() <= SHORT;
    // The name of a member has a byte in front.
    let is_short_member = |name: &[u8], _: &[u8]| name.len() <= SHORT + 1;
    let is_integer = |name: &[u8], _: &[u8]| parse_integer(name).is_some();
    Ok(Reply::text(match collection.kind {
        Kind::List => "quicklist",
        Kind::Hash if all_are(context, &opened, FEW_FIELDS, &Span::ALL, is_short)? => "listpack",
        Kind::Set if all_are(context, &opened, FEW_MEMBERS, &Span::NAMES, is_integer)? => "intset",
        Kind::Hash | Kind::Set => "hashtable",
        Kind::SortedSet if all_are(context, &opened, FEW_SCORES, &Span::by_member(), is_short_member)? => "listpack",
        Kind::SortedSet => "skiplist",
    }))
}

fn string_encoding(value: &[u8]) -> &'static str {
    match value {
        value if parse_integer(value).is_some() => "int",
        value if value.len() <= SHORT_STRING => "embstr",
        _ => "raw",
    }
}

/// Whether a collection has at most so many elements, and all are like that.
fn all_are(
    context: &Context<'_, '_>,
    opened: &Opened,
    most: usize,
    span: &Span,
    is_like: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<bool, Refusal> {
    let mut all_are = opened.count() <= most;
    if all_are {
        context.space.elements.visit(opened.owner(), span, |name, value| {
            all_are = is_like(name, value);
            all_are
        })?;
    }
    Ok(all_are)
}

fn frequency(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match context.get(&arguments[2])? {
        None => Ok(Reply::Nil),
        Some(_) => Err(words(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust.",
        )),
    }
}

/// No two keys share a value.
fn references(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(context.get(&arguments[2])?.map_or(Reply::Nil, |_| Reply::Integer(1)))
}

/// Elements that are looked at unless the client says how many.
const SAMPLES: usize = 5;

/// What the records of a key take in the store: of a collection from some of its elements, in their order.
fn usage(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut samples = SAMPLES;
    let (options, rest) = arguments[3..].as_chunks();
    for [option, number] in options {
        if !is_word(option, "samples") {
            return Err(SYNTAX);
        }
        let number = parse_integer(number).ok_or(NOT_AN_INTEGER)?;
        samples = match usize::try_from(number).map_err(|_| SYNTAX)? {
            0 => usize::MAX,
            number => number,
        };
    }
    if !rest.is_empty() {
        return Err(SYNTAX);
    }
    let name = &arguments[2];
    let Some(entry) = context.get(name)? else { return Ok(Reply::Nil) };
    let mut bytes = name.len() + entry.encode().len();
    if let Value::Collection(value) = entry.value {
        let opened = Opened { key: context.key(name), entry: Entry { value, expires_ms: entry.expires_ms } };
        let (mut seen, mut sampled) = (0, 0);
        let prefix = opened.owner().prefix().len();
        context.space.elements.visit(opened.owner(), &Span::ALL, |name, value| {
            sampled += prefix + name.len() + value.len();
            seen += 1;
            seen < samples
        })?;
        // A member of a sorted set has two rows, of which the samples are the first sort.
        let rows = if value.kind == Kind::SortedSet { 2 * opened.count() } else { opened.count() };
        bytes += (sampled as f64 / seen.max(1) as f64 * rows as f64) as usize;
    }
    Ok(Reply::Integer(bytes as i64))
}
