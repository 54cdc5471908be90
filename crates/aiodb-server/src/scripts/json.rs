//! The library `cjson`: JSON from values of Lua, and the other way.

use mlua::{Lua, Table, Value};

/// Tables in tables, at most.
const MOST_DEPTH: usize = 1000;

/// Bytes of JSON, at most: it is not all in the memory of the script while it is read or written.
const MOST_BYTES: usize = 16 << 20;

/// An array may have so many gaps for each element, once it has more than a few places.
const MOST_GAPS: usize = 2;
const FEW_PLACES: usize = 10;

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.set(
        "encode",
        lua.create_function(|lua, value: Value| {
            let mut text = Vec::new();
            encode(&value, &mut text, 0)?;
            lua.create_string(text)
        })?,
    )?;
    library.set(
        "decode",
        lua.create_function(|lua, text: mlua::String| {
            if text.as_bytes().len() > MOST_BYTES {
                return Err(too_long());
            }
            let parsed = serde_json::from_slice(&text.as_bytes());
            decode(lua, parsed.map_err(|error| mlua::Error::runtime(format!("this is not JSON: {error}")))?)
        })?,
    )?;
    library.set("null", Value::NULL)?;
    Ok(library)
}

fn decode(lua: &Lua, value: serde_json::Value) -> mlua::Result<Value> {
    Ok(match value {
        serde_json::Value::Null => Value::NULL,
        serde_json::Value::Bool(is_true) => Value::Boolean(is_true),
        serde_json::Value::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Value::String(lua.create_string(text)?),
        serde_json::Value::Array(values) => {
            let table = lua.create_table()?;
            for (at, value) in values.into_iter().enumerate() {
                table.raw_set(at + 1, decode(lua, value)?)?;
            }
            Value::Table(table)
        }
        serde_json::Value::Object(members) => {
            let table = lua.create_table()?;
            for (name, value) in members {
                table.raw_set(name, decode(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}

fn too_long() -> mlua::Error {
    mlua::Error::runtime(format!("JSON of more than {MOST_BYTES} bytes is not taken"))
}

fn encode(value: &Value, text: &mut Vec<u8>, depth: usize) -> mlua::Result<()> {
    match value {
        _ if text.len() > MOST_BYTES => return Err(too_long()),
        Value::Nil => text.extend(b"null"),
        value if value.is_null() => text.extend(b"null"),
        Value::Boolean(is_true) => text.extend(is_true.to_string().bytes()),
        Value::Integer(number) => text.extend(number_text(*number as f64).bytes()),
        Value::Number(number) if number.is_finite() => text.extend(number_text(*number).bytes()),
        Value::Number(_) => return Err(mlua::Error::runtime("Cannot serialise number: must not be NaN or Inf")),
        Value::String(string) => encode_string(&string.as_bytes(), text),
        Value::Table(_) if depth >= MOST_DEPTH => {
            return Err(mlua::Error::runtime("Cannot serialise, excessive depth"));
        }
        Value::Table(table) => return encode_table(table, text, depth + 1),
        other => {
            return Err(mlua::Error::runtime(format!("Cannot serialise {}: type not supported", other.type_name())));
        }
    }
    Ok(())
}

/// An array if all keys are places of one, else an object.
fn encode_table(table: &Table, text: &mut Vec<u8>, depth: usize) -> mlua::Result<()> {
    match places(table)? {
        0 => {
            text.push(b'{');
            for pair in table.pairs::<Value, Value>() {
                let (name, value) = pair?;
                if text.last() != Some(&b'{') {
                    text.push(b',');
                }
                match name {
                    Value::String(name) => encode_string(&name.as_bytes(), text),
                    Value::Integer(number) => text.extend(format!("\"{}\"", number_text(number as f64)).bytes()),
                    Value::Number(number) => text.extend(format!("\"{}\"", number_text(number)).bytes()),
                    _ => {
                        return Err(mlua::Error::runtime(
                            "Cannot serialise table: table key must be a number or string",
                        ));
                    }
                }
                text.push(b':');
                encode(&value, text, depth)?;
            }
            text.push(b'}');
        }
        places => {
            text.push(b'[');
            for at in 1..=places {
                if at > 1 {
                    text.push(b',');
                }
                encode(&table.raw_get(at)?, text, depth)?;
            }
            text.push(b']');
        }
    }
    Ok(())
}

/// Places of an array with these keys; 0 of a table that is none, or has nothing.
fn places(table: &Table) -> mlua::Result<usize> {
    let (mut last, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        let place = match pair?.0 {
            Value::Integer(place) if place > 0 => place as usize,
            Value::Number(place) if place >= 1.0 && place.fract() == 0.0 && place < 1e15 => place as usize,
            _ => return Ok(0),
        };
        (last, count) = (last.max(place), count + 1);
    }
    if last > FEW_PLACES && last > count * MOST_GAPS {
        return Err(mlua::Error::runtime("Cannot serialise table: excessively sparse array"));
    }
    Ok(last)
}

fn encode_string(bytes: &[u8], text: &mut Vec<u8>) {
    text.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' | b'/' => text.extend([b'\\', *byte]),
            8 => text.extend(b"\\b"),
            b'\t' => text.extend(b"\\t"),
            b'\n' => text.extend(b"\\n"),
            12 => text.extend(b"\\f"),
            b'\r' => text.extend(b"\\r"),
            0..32 | 127 => text.extend(format!("\\u{byte:04x}").bytes()),
            _ => text.push(*byte),
        }
    }
    text.push(b'"');
}

/// A number with 14 digits, as C prints it with `%.14g`.
fn number_text(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.into();
    }
    let scientific = format!("{number:.13e}");
    let (digits, exponent) = scientific.split_once('e').expect("the form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..14).contains(&exponent) {
        return trimmed(&format!("{number:.*}", (13 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}
