//! Requests: arrays of strings, or lines as a person types them, taken from what a client has sent so far.
//!
//! This is the server's side of the protocol, which libraries do not have: only commands are taken, every length has a bound
//! before anything is kept for it, what is wrong is said in Redis's words, and a request that comes in pieces is not read
//! again from its beginning.

use bytes::{Buf, Bytes, BytesMut};

use crate::number::parse_integer;

/// A line, and the line with a length, may have so many bytes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A string may have so many bytes (Redis's `proto-max-bulk-len`).
pub(crate) const MAX_STRING_BYTES: usize = 512 << 20;

/// A request may have so many bytes in all (Redis's `client-query-buffer-limit`).
pub(crate) const MAX_REQUEST_BYTES: usize = 1 << 30;

/// What an argument takes beside its bytes.
const ARGUMENT_BYTES: usize = size_of::<Bytes>();

/// What a client may send before it has given the password.
const MAX_STRANGER_ARGUMENTS: i64 = 10;
const MAX_STRANGER_STRING_BYTES: i64 = 16_384;

/// Why nothing that a client sends can be read any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The reason in Redis's words, without `Protocol error: `.
    Protocol(Bytes),
    /// The request is longer than this server takes. Redis ends the connection without a word.
    TooLong,
}

/// A request: the command's name and its arguments.
pub(crate) type Request = Vec<Bytes>;

/// Whether a request is a line of HTTP. A web page can have a browser send a server what it likes behind such lines.
pub(crate) fn is_http(request: &Request) -> bool {
    ["post", "host:"].iter().any(|word| request[0].eq_ignore_ascii_case(word.as_bytes()))
}

/// Reads requests; what has come of one that is not complete stays here.
#[derive(Default)]
pub(crate) struct Decoder {
    /// Strings that are still to come; 0 between requests.
    missing: i64,
    /// The length of the string that comes next, once it is known.
    next_length: Option<usize>,
    arguments: Vec<Bytes>,
    bytes: usize,
}

impl Decoder {
    /// Takes a complete request from the buffer's beginning; `None` if more must come first. An empty request is none and
    /// is passed over. `known` says that the client has given the password, or needs none.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut, known: bool) -> Result<Option<Request>, Fault> {
        loop {
            if self.missing == 0 {
                match buffer.first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        let Some(count) = take_count(buffer, known)? else { return Ok(None) };
                        self.missing = count;
                        continue;
                    }
                    Some(_) => match take_line(buffer)? {
                        None => return Ok(None),
                        Some(arguments) if arguments.is_empty() => continue,
                        Some(arguments) => return Ok(Some(arguments)),
                    },
                }
            }
            let Some(argument) = self.take_string(buffer, known)? else { return Ok(None) };
            self.bytes += argument.len() + ARGUMENT_BYTES;
            if self.bytes > MAX_REQUEST_BYTES {
                return Err(Fault::TooLong);
            }
            self.arguments.push(argument);
            self.missing -= 1;
            if self.missing == 0 {
                self.bytes = 0;
                return Ok(Some(std::mem::take(&mut self.arguments)));
            }
        }
    }

    /// Whether nothing of a request has been taken.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.missing == 0
    }

    /// Bytes that must still come before the decoder can go on.
    pub(crate) fn wanted(&self, buffer: &BytesMut) -> usize {
        self.next_length.map_or(1, |length| (length + 2).saturating_sub(buffer.len()))
    }

    fn take_string(&mut self, buffer: &mut BytesMut, known: bool) -> Result<Option<Bytes>, Fault> {
        let length = match self.next_length {
            Some(length) => length,
            None => {
                let Some(length) = take_length(buffer, known)? else { return Ok(None) };
                *self.next_length.insert(length)
            }
        };
        if buffer.len() < length + 2 {
            return Ok(None);
        }
        self.next_length = None;
        let argument = buffer.split_to(length).freeze();
        // What follows should be the end of a line; Redis does not look either.
        buffer.advance(2);
        Ok(Some(argument))
    }
}

fn protocol(text: &str) -> Fault {
    Fault::Protocol(Bytes::copy_from_slice(text.as_bytes()))
}

/// The bytes before the end of a line; `None` if that has not come.
fn line_end(buffer: &BytesMut, too_long: &str) -> Result<Option<usize>, Fault> {
    match buffer.iter().take(MAX_LINE_BYTES + 1).position(|byte| *byte == b'\r') {
        Some(end) if end + 2 <= buffer.len() => Ok(Some(end)),
        Some(_) => Ok(None),
        None if buffer.len() > MAX_LINE_BYTES => Err(protocol(too_long)),
        None => Ok(None),
    }
}

/// Takes the line with the number of strings.
fn take_count(buffer: &mut BytesMut, known: bool) -> Result<Option<i64>, Fault> {
    let Some(end) = line_end(buffer, "too big mbulk count string")? else { return Ok(None) };
    let count = parse_integer(&buffer[1..end]).filter(|count| *count <= i64::from(i32::MAX));
    let count = count.ok_or_else(|| protocol("invalid multibulk length"))?;
    if !known && count > MAX_STRANGER_ARGUMENTS {
        return Err(protocol("unauthenticated multibulk length"));
    }
    buffer.advance(end + 2);
    Ok(Some(count.max(0)))
}

/// Takes the line with the length of a string.
fn take_length(buffer: &mut BytesMut, known: bool) -> Result<Option<usize>, Fault> {
    let Some(end) = line_end(buffer, "too big bulk count string")? else { return Ok(None) };
    if buffer[0] != b'$' {
        return Err(Fault::Protocol([&b"expected '$', got '"[..], &buffer[..1], b"'"].concat().into()));
    }
    let length = parse_integer(&buffer[1..end]).filter(|length| (0..=MAX_STRING_BYTES as i64).contains(length));
    let length = length.ok_or_else(|| protocol("invalid bulk length"))?;
    if !known && length > MAX_STRANGER_STRING_BYTES {
        return Err(protocol("unauthenticated bulk length"));
    }
    buffer.advance(end + 2);
    Ok(Some(length as usize))
}

/// Takes a line of words.
fn take_line(buffer: &mut BytesMut) -> Result<Option<Request>, Fault> {
    let Some(end) = buffer.iter().take(MAX_LINE_BYTES + 1).position(|byte| *byte == b'\n') else {
        return if buffer.len() > MAX_LINE_BYTES { Err(protocol("too big inline request")) } else { Ok(None) };
    };
    let line = buffer.split_to(end);
    buffer.advance(1);
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    split_words(line).map(Some).ok_or_else(|| protocol("unbalanced quotes in request"))
}

/// The words of a line, some of them in quotes; `None` if a quote is not closed, or something follows it at once.
fn split_words(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += line[at..].iter().take_while(|byte| is_space(**byte)).count();
        if at == line.len() || line[at] == 0 {
            return Some(words);
        }
        let mut word = Vec::new();
        while at < line.len() && !is_space(line[at]) && line[at] != 0 {
            match line[at] {
                quote @ (b'"' | b'\'') => {
                    at = take_quoted(line, at + 1, quote, &mut word)?;
                    if at < line.len() && !is_space(line[at]) {
                        return None;
                    }
                    break;
                }
                byte => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        words.push(word.into());
    }
}

/// Adds what stands up to the closing quote to a word, and says what comes after it.
fn take_quoted(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line[at..] {
            [b'\\', b'x', high, low, ..] if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| (byte as char).to_digit(16).expect("just checked") as u8;
                word.push(digit(high) * 16 + digit(low));
                at += 4;
            }
            [b'\\', escaped, ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                at += 2;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] if byte == quote => return Some(at + 1),
            [byte, ..] => {
                word.push(byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

/// As C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests;
