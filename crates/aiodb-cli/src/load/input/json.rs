//! Fields of JSON lines. Only the wanted fields are decoded; the rest of a line is checked, not built.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The path to a field: `a.b`, or a JSON pointer (RFC 6901) such as `/a/b`.
pub struct Field {
    path: Vec<String>,
    written: String,
}

impl Field {
    /// Reads a path.
    pub fn parse(written: &str) -> Field {
        let path = match written.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect(),
            None => written.split('.').map(str::to_string).collect(),
        };
        Field { path, written: written.to_string() }
    }

    /// The field's bytes: a string's text, or another value's JSON as it is written.
    pub fn find<'a>(&self, record: &'a RawValue) -> Result<Cow<'a, [u8]>, String> {
        let mut value = record;
        for name in &self.path {
            let object: BTreeMap<String, &RawValue> = serde_json::from_str(value.get())
                .map_err(|_| format!("no field `{}`: it is looked for in something that is no object", self.written))?;
            value = object.get(name).copied().ok_or_else(|| format!("no field `{}`", self.written))?;
        }
        match value.get().as_bytes() {
            b"null" => Err(format!("the field `{}` is null", self.written)),
            [b'"', ..] => {
                let text: String = serde_json::from_str(value.get()).map_err(|error| self.undecodable(&error))?;
                Ok(Cow::Owned(text.into_bytes()))
            }
            json => Ok(Cow::Borrowed(json)),
        }
    }

    /// Like [`Field::find`], for a field that is to be a key: an object or array would depend on how it is spaced.
    pub fn find_key<'a>(&self, record: &'a RawValue) -> Result<Cow<'a, [u8]>, String> {
        match self.find(record)? {
            Cow::Borrowed([b'{' | b'[', ..]) => Err(format!("the field `{}` is no string or number", self.written)),
            key => Ok(key),
        }
    }

    fn undecodable(&self, error: &serde_json::Error) -> String {
        format!("the field `{}` cannot be decoded: {error}", self.written)
    }
}

/// Checks that a line is JSON.
pub fn parse(line: &[u8]) -> Result<&RawValue, String> {
    serde_json::from_slice(line).map_err(|error| {
        // The library counts lines inside the text, which here is always one line.
        let reason = error.to_string().replace("line 1 column", "byte");
        format!("not JSON: {reason}")
    })
}
