//! Functions of Lua's libraries with bounds that Lua 5.1 does not have: where it would count past 32 bits or call itself until the stack of the
//! thread is used up, a script gets an error.

use std::ffi::{CStr, c_int};
use std::slice;

use mlua::ffi;
use mlua::{Function, Lua, Table, lua_CFunction, lua_State};

/// Lua matches each quantifier of a pattern in a call of its own.
const MOST_QUANTIFIERS: usize = 1000;
const QUANTIFIERS: &[u8] = b"*+-?";

/// Lua's own bound, for what fits into 32 bits.
const MOST_UNPACKED: f64 = 8000.0;

/// Puts the bounded functions in the places of Lua's own, before anything is made of these.
pub(super) fn bound_libraries(lua: &Lua) -> mlua::Result<()> {
    let globals = lua.globals();
    replace(lua, &globals, "unpack", unpack)?;
    let string: Table = globals.get("string")?;
    replace(lua, &string, "find", find)?;
    ["match", "gmatch", "gsub"].into_iter().try_for_each(|name| replace(lua, &string, name, with_pattern))
}

/// Puts a function in the place of another, which it finds as its upvalue.
fn replace(lua: &Lua, library: &Table, name: &str, bounded: lua_CFunction) -> mlua::Result<()> {
    let original: Function = library.get(name)?;
    // SAFETY: one value is on the stack, the argument, and one is left there, the closure that has taken it.
    let bounded: Function = unsafe { lua.exec_raw(original, |state| ffi::lua_pushcclosure(state, bounded, 1)) }?;
    library.set(name, bounded)
}

/// Goes on in Lua's own function with the same arguments.
///
/// # Safety
///
/// The state is that of a function that [`replace`] has made, as Lua calls it.
unsafe fn original(state: *mut lua_State) -> c_int {
    // SAFETY: the upvalue is a function of Lua's libraries, which takes what is on the stack, and has no upvalues of its own.
    unsafe {
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(1)) {
            Some(function) => function(state),
            None => refuse(state, c"no function of Lua's own"),
        }
    }
}

/// # Safety
///
/// Nothing that is to be dropped is on the stack of the caller, which Lua leaves by a jump.
unsafe fn refuse(state: *mut lua_State, message: &CStr) -> c_int {
    // SAFETY: the message has nothing that Lua would take for the place of an argument.
    unsafe { ffi::luaL_error(state, message.as_ptr()) }
}

/// Whether the second argument is a pattern with more quantifiers than Lua's stack is for.
///
/// # Safety
///
/// As [`original`].
unsafe fn is_too_deep(state: *mut lua_State) -> bool {
    // SAFETY: a string stays where it is while it is an argument. A number is no string here, and short.
    let pattern = unsafe {
        if ffi::lua_type(state, 2) != ffi::LUA_TSTRING {
            return false;
        }
        let mut length = 0;
        let bytes = ffi::lua_tolstring(state, 2, &mut length);
        slice::from_raw_parts(bytes.cast::<u8>(), length)
    };
    pattern.iter().filter(|byte| QUANTIFIERS.contains(byte)).count() > MOST_QUANTIFIERS
}

unsafe extern "C-unwind" fn with_pattern(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it, and nothing here is to be dropped.
    unsafe { if is_too_deep(state) { refuse(state, c"pattern too complex") } else { original(state) } }
}

/// With a fourth argument it looks for the text itself.
unsafe extern "C-unwind" fn find(state: *mut lua_State) -> c_int {
    // SAFETY: as above.
    unsafe { if ffi::lua_toboolean(state, 4) == 0 { with_pattern(state) } else { original(state) } }
}

unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> c_int {
    // SAFETY: as above. What is no number is 0 here, and refused by Lua's own function.
    unsafe {
        let number =
            |at, default| if ffi::lua_isnoneornil(state, at) != 0 { default } else { ffi::lua_tonumber(state, at) };
        let (from, to) = (number(2, 1.0), number(3, ffi::lua_objlen(state, 1) as f64));
        let all = f64::from(i32::MIN)..=f64::from(i32::MAX);
        if all.contains(&from) && all.contains(&to) && to - from < MOST_UNPACKED {
            original(state)
        } else {
            refuse(state, c"too many results to unpack")
        }
    }
}
