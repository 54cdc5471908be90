//! Replies as values of Lua, and the other way, as Redis turns them into each other.

use mlua::{Lua, Table, Value};

use crate::refusal::one_line;
use crate::reply::{Protocol, Reply};
use crate::score::score_text;

/// Tables in tables that a script may give back.
const MOST_DEPTH: usize = 100;

/// Values in all, and bytes of strings, that a script may give back.
const MOST_VALUES: usize = 4 << 20;
const MOST_BYTES: usize = 512 << 20;

/// A reply as a script sees it.
pub(super) fn to_lua(lua: &Lua, reply: Reply, protocol: Protocol) -> mlua::Result<Value> {
    let is_new = protocol == Protocol::Resp3;
    let string = |bytes: &[u8]| Ok(Value::String(lua.create_string(bytes)?));
    let single = |name: &str, value: Value| {
        let table = lua.create_table()?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Simple(text) => single("ok", string(text.as_bytes())?),
        Reply::Status(text) => single("ok", string(&text)?),
        Reply::Error(line) => single("err", string(&line)?),
        Reply::Integer(number) => Ok(Value::Number(number as f64)),
        Reply::Flag(is_true) if is_new => Ok(Value::Boolean(is_true)),
        Reply::Flag(is_true) => Ok(Value::Number(f64::from(u8::from(is_true)))),
        Reply::Bulk(bytes) => string(&bytes),
        Reply::Double(number) if is_new => single("double", Value::Number(number)),
        Reply::Double(number) => string(&score_text(number)),
        Reply::Nil | Reply::NilArray => Ok(if is_new { Value::Nil } else { Value::Boolean(false) }),
        Reply::Text(text) if is_new => {
            let table = lua.create_table()?;
            table.raw_set("format", "txt")?;
            table.raw_set("string", text)?;
            single("verbatim_string", Value::Table(table))
        }
        Reply::Text(text) => string(text.as_bytes()),
        Reply::Set(replies) if is_new => {
            let table = lua.create_table()?;
            for reply in replies {
                table.raw_set(to_lua(lua, reply, protocol)?, true)?;
            }
            single("set", Value::Table(table))
        }
        Reply::Map(pairs) if is_new => {
            let table = lua.create_table()?;
            for (key, value) in pairs {
                table.raw_set(to_lua(lua, key, protocol)?, to_lua(lua, value, protocol)?)?;
            }
            single("map", Value::Table(table))
        }
        Reply::Map(pairs) => sequence(lua, pairs.into_iter().flat_map(|(key, value)| [key, value]), protocol),
        Reply::Array(replies) | Reply::Set(replies) | Reply::Push(replies) | Reply::Several(replies) => {
            sequence(lua, replies.into_iter(), protocol)
        }
    }
}

fn sequence(lua: &Lua, replies: impl Iterator<Item = Reply>, protocol: Protocol) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for (at, reply) in replies.enumerate() {
        table.raw_set(at + 1, to_lua(lua, reply, protocol)?)?;
    }
    Ok(Value::Table(table))
}

/// What a script gives back as a reply.
pub(super) fn from_lua(value: Value, protocol: Protocol) -> mlua::Result<Reply> {
    let mut left = Left { values: MOST_VALUES, bytes: MOST_BYTES };
    Ok(left
        .reply(value, protocol, 0)?
        .unwrap_or_else(|| Reply::Error("ERR the reply of the script is too large".into())))
}

/// What may still come.
struct Left {
    values: usize,
    bytes: usize,
}

impl Left {
    /// `None` if it is too much.
    fn reply(&mut self, value: Value, protocol: Protocol, depth: usize) -> mlua::Result<Option<Reply>> {
        let Some(values) = self.values.checked_sub(1) else { return Ok(None) };
        self.values = values;
        Ok(Some(match value {
            Value::Integer(number) => Reply::Integer(number),
            Value::Number(number) => Reply::Integer(truncated(number)),
            Value::String(text) => {
                let text = text.as_bytes();
                let Some(bytes) = self.bytes.checked_sub(text.len()) else { return Ok(None) };
                self.bytes = bytes;
                Reply::copied(&text)
            }
            Value::Boolean(is_true) if protocol == Protocol::Resp3 => Reply::Flag(is_true),
            Value::Boolean(true) => Reply::Integer(1),
            Value::Table(_) if depth > MOST_DEPTH => Reply::Error("ERR reached lua stack limit".into()),
            Value::Table(table) => return self.table(&table, protocol, depth),
            _ => Reply::Nil,
        }))
    }

    fn table(&mut self, table: &Table, protocol: Protocol, depth: usize) -> mlua::Result<Option<Reply>> {
        if let Value::String(text) = table.raw_get("err")? {
            return Ok(Some(Reply::Error(one_line(&text.as_bytes()))));
        }
        if let Value::String(text) = table.raw_get("ok")? {
            return Ok(Some(Reply::Status(one_line(&text.as_bytes()))));
        }
        if let Some(number) = number_of(&table.raw_get("double")?) {
            return Ok(Some(Reply::Double(number)));
        }
        if let Value::Table(map) = table.raw_get("map")? {
            let mut pairs = Vec::new();
            for pair in map.pairs::<Value, Value>() {
                let (key, value) = pair?;
                let (key, value) = (self.reply(key, protocol, depth + 1)?, self.reply(value, protocol, depth + 1)?);
                let (Some(key), Some(value)) = (key, value) else { return Ok(None) };
                pairs.push((key, value));
            }
            return Ok(Some(Reply::Map(pairs)));
        }
        if let Value::Table(set) = table.raw_get("set")? {
            let mut members = Vec::new();
            for pair in set.pairs::<Value, Value>() {
                let Some(member) = self.reply(pair?.0, protocol, depth + 1)? else { return Ok(None) };
                members.push(member);
            }
            return Ok(Some(Reply::Set(members)));
        }
        let mut replies = Vec::new();
        for at in 1.. {
            let value: Value = table.raw_get(at)?;
            if value.is_nil() {
                break;
            }
            let Some(reply) = self.reply(value, protocol, depth + 1)? else { return Ok(None) };
            replies.push(reply);
        }
        Ok(Some(Reply::Array(replies)))
    }
}

/// A number, whole or not.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// As C turns a number into a whole one on this hardware: what does not fit becomes the least.
fn truncated(number: f64) -> i64 {
    let fits = number > -9.3e18 && number < 9_223_372_036_854_775_808.0;
    if fits { number as i64 } else { i64::MIN }
}
