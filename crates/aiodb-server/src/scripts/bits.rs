//! The library `bit`: operations on whole numbers of 32 bits.

use mlua::{Lua, Table, Variadic};

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let one = |name: &str, operation: fn(u32) -> u32| {
        library.set(name, lua.create_function(move |_, number: f64| Ok(number_of(operation(bits_of(number)))))?)
    };
    one("tobit", |bits| bits)?;
    one("bnot", |bits| !bits)?;
    one("bswap", u32::swap_bytes)?;
    let many = |name: &str, operation: fn(u32, u32) -> u32| {
        let apply = move |_: &Lua, (first, rest): (f64, Variadic<f64>)| {
            Ok(number_of(rest.iter().map(|number| bits_of(*number)).fold(bits_of(first), operation)))
        };
        library.set(name, lua.create_function(apply)?)
    };
    many("band", |left, right| left & right)?;
    many("bor", |left, right| left | right)?;
    many("bxor", |left, right| left ^ right)?;
    let by = |name: &str, operation: fn(u32, u32) -> u32| {
        // Of a distance only the lower five bits count.
        let apply = move |_: &Lua, (number, distance): (f64, f64)| {
            Ok(number_of(operation(bits_of(number), bits_of(distance) & 31)))
        };
        library.set(name, lua.create_function(apply)?)
    };
    by("lshift", |bits, distance| bits << distance)?;
    by("rshift", |bits, distance| bits >> distance)?;
    by("arshift", |bits, distance| (bits as i32 >> distance) as u32)?;
    by("rol", u32::rotate_left)?;
    by("ror", u32::rotate_right)?;
    library.set(
        "tohex",
        lua.create_function(|_, (number, digits): (f64, Option<f64>)| Ok(hexadecimal(number, digits)))?,
    )?;
    Ok(library)
}

/// The lower 32 bits of a number, rounded to the nearest whole one.
fn bits_of(number: f64) -> u32 {
    number.round_ties_even().rem_euclid(4_294_967_296.0) as u32
}

fn number_of(bits: u32) -> f64 {
    f64::from(bits as i32)
}

/// The last digits, eight unless the script says how many; in capitals if that is below zero.
fn hexadecimal(number: f64, digits: Option<f64>) -> String {
    let digits = digits.unwrap_or(8.0);
    let shown = (digits.abs() as usize).min(8);
    let text = format!("{:08x}", bits_of(number));
    let text = &text[8 - shown..];
    if digits < 0.0 { text.to_uppercase() } else { text.into() }
}
