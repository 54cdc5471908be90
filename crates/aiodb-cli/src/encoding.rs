//! Keys and values are bytes; on command lines and in text files they may be written in hex or base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use std::io::{self, Write};

/// How bytes are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoding {
    /// The bytes themselves
    Text,
    /// Two hexadecimal digits a byte
    Hex,
    /// Base64 with padding (RFC 4648)
    Base64,
}

impl Encoding {
    /// The name used on command lines and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Text => "text",
            Encoding::Hex => "hex",
            Encoding::Base64 => "base64",
        }
    }

    /// Appends the bytes that `written` stands for to `bytes`; an error says what is wrong with it.
    pub fn decode_to(self, written: &[u8], bytes: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Encoding::Text => bytes.extend_from_slice(written),
            Encoding::Hex => {
                let start = bytes.len();
                bytes.resize(start + written.len() / 2, 0);
                hex::decode_to_slice(written, &mut bytes[start..]).map_err(|error| format!("not hex: {error}"))?;
            }
            Encoding::Base64 => {
                STANDARD.decode_vec(written, bytes).map_err(|error| format!("not base64: {error}"))?;
            }
        }
        Ok(())
    }

    /// Writes `bytes` to `out`; [`Encoding::Text`] leaves them as they are, UTF-8 or not.
    pub fn write(self, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
        match self {
            Encoding::Text => out.write_all(bytes),
            _ => out.write_all(self.encode(bytes).0.as_bytes()),
        }
    }

    /// Writes `bytes` as text and says how: bytes that are not UTF-8 cannot be [`Encoding::Text`] and become base64.
    pub fn encode(self, bytes: &[u8]) -> (String, Encoding) {
        match self {
            Encoding::Text => match std::str::from_utf8(bytes) {
                Ok(text) => (text.to_string(), Encoding::Text),
                Err(_) => (STANDARD.encode(bytes), Encoding::Base64),
            },
            Encoding::Hex => (hex::encode(bytes), Encoding::Hex),
            Encoding::Base64 => (STANDARD.encode(bytes), Encoding::Base64),
        }
    }
}

#[cfg(test)]
mod tests;
