//! Replies, and their bytes in both versions of the protocol.

use std::collections::VecDeque;
use std::fmt::{Display, Write};

use bytes::{Buf, Bytes, BytesMut};
use resp_rs::{resp2, resp3};

use crate::refusal::Refusal;
use crate::score::score_text;

/// What a command answers.
pub(crate) type Answer = Result<Reply, Refusal>;

/// Strings from this length on go to the socket from where they lie, without another copy.
const LARGE_BYTES: usize = 16 << 10;

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

impl Protocol {
    pub(crate) fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Simple(&'static str),
    /// [`Reply::Simple`] with a text of its own: one line.
    Status(Bytes),
    Error(Bytes),
    Integer(i64),
    /// 1 or 0 in RESP2.
    Flag(bool),
    Bulk(Bytes),
    /// A number that need not be whole; a string in RESP2.
    Double(f64),
    /// No value.
    Nil,
    /// No array: what an EXEC answers that did nothing.
    NilArray,
    Array(Vec<Reply>),
    /// An array in RESP2.
    Set(Vec<Reply>),
    /// An array of keys and values in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// Text for people; a string in RESP2.
    Text(String),
    /// What is not asked for; an array in RESP2.
    Push(Vec<Reply>),
    /// As many replies to one command. They stand by themselves, and an array counts them as one.
    Several(Vec<Reply>),
}

/// What most commands answer that change something.
pub(crate) const OK: Reply = Reply::Simple("OK");

impl Reply {
    /// A string that the program has.
    pub(crate) fn text(text: &'static str) -> Reply {
        Reply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    /// A string that others keep.
    pub(crate) fn copied(bytes: &[u8]) -> Reply {
        Reply::Bulk(Bytes::copy_from_slice(bytes))
    }

    /// 1 or 0.
    pub(crate) fn flag(is_true: bool) -> Reply {
        Reply::Integer(i64::from(is_true))
    }

    /// A string or nothing.
    pub(crate) fn bulk_or_nil(value: Option<Bytes>) -> Reply {
        value.map_or(Reply::Nil, Reply::Bulk)
    }

    /// About how much memory it takes: its strings, and so much for each part.
    pub(crate) fn bytes(&self, part_bytes: usize) -> usize {
        let all = |replies: &[Reply]| replies.iter().map(|reply| reply.bytes(part_bytes)).sum();
        part_bytes
            + match self {
                Reply::Status(bytes) | Reply::Error(bytes) | Reply::Bulk(bytes) => bytes.len(),
                Reply::Text(text) => text.len(),
                Reply::Array(replies) | Reply::Set(replies) | Reply::Push(replies) | Reply::Several(replies) => {
                    all(replies)
                }
                Reply::Map(pairs) => {
                    pairs.iter().map(|(key, value)| key.bytes(part_bytes) + value.bytes(part_bytes)).sum()
                }
                _ => 0,
            }
    }

    fn resp2(self) -> resp2::Frame {
        use resp2::Frame;
        let all = |replies: Vec<Reply>| Frame::Array(Some(replies.into_iter().map(Reply::resp2).collect()));
        match self {
            Reply::Simple(text) => Frame::SimpleString(Bytes::from_static(text.as_bytes())),
            Reply::Status(text) => Frame::SimpleString(text),
            Reply::Error(line) => Frame::Error(line),
            Reply::Integer(number) => Frame::Integer(number),
            Reply::Flag(is_true) => Frame::Integer(i64::from(is_true)),
            Reply::Bulk(bytes) => Frame::BulkString(Some(bytes)),
            Reply::Double(number) => Frame::BulkString(Some(score_text(number))),
            Reply::Nil => Frame::BulkString(None),
            Reply::NilArray => Frame::Array(None),
            Reply::Array(replies) | Reply::Set(replies) | Reply::Push(replies) | Reply::Several(replies) => {
                all(replies)
            }
            Reply::Map(pairs) => all(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
            Reply::Text(text) => Frame::BulkString(Some(text.into())),
        }
    }

    fn resp3(self) -> resp3::Frame {
        use resp3::Frame;
        let all = |replies: Vec<Reply>| replies.into_iter().map(Reply::resp3).collect();
        match self {
            Reply::Simple(text) => Frame::SimpleString(Bytes::from_static(text.as_bytes())),
            Reply::Status(text) => Frame::SimpleString(text),
            Reply::Error(line) => Frame::Error(line),
            Reply::Integer(number) => Frame::Integer(number),
            Reply::Flag(is_true) => Frame::Boolean(is_true),
            Reply::Bulk(bytes) => Frame::BulkString(Some(bytes)),
            // With Redis's digits.
            Reply::Double(number) => Frame::SpecialFloat(score_text(number)),
            Reply::Nil | Reply::NilArray => Frame::Null,
            Reply::Array(replies) => Frame::Array(Some(all(replies))),
            Reply::Set(replies) => Frame::Set(all(replies)),
            Reply::Push(replies) | Reply::Several(replies) => Frame::Push(all(replies)),
            Reply::Map(pairs) => {
                Frame::Map(pairs.into_iter().map(|(key, value)| (key.resp3(), value.resp3())).collect())
            }
            Reply::Text(text) => Frame::VerbatimString { payload: format!("txt:{text}").into() },
        }
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        answer.unwrap_or_else(|refusal| Reply::Error(refusal.line()))
    }
}

/// Bytes on their way to a client.
#[derive(Default)]
pub(crate) struct Output {
    parts: VecDeque<Bytes>,
    /// Small replies, which go out together.
    tail: BytesMut,
}

impl Output {
    /// Adds a reply.
    pub(crate) fn push(&mut self, reply: Reply, protocol: Protocol) {
        match reply {
            Reply::Bulk(bytes) if bytes.len() >= LARGE_BYTES => {
                self.line(b'$', bytes.len());
                self.parts.extend([self.tail.split().freeze(), bytes]);
                self.tail.extend_from_slice(b"\r\n");
            }
            Reply::Several(replies) => replies.into_iter().for_each(|reply| self.push(reply, protocol)),
            Reply::Array(replies) if replies.iter().any(|reply| matches!(reply, Reply::Several(_))) => {
                self.line(b'*', replies.len());
                replies.into_iter().for_each(|reply| self.push(reply, protocol));
            }
            // These are the same in both versions, and most replies are among them.
            Reply::Simple(text) => self.line(b'+', text),
            Reply::Integer(number) => self.line(b':', number),
            Reply::Bulk(bytes) => {
                self.line(b'$', bytes.len());
                self.tail.extend_from_slice(&bytes);
                self.tail.extend_from_slice(b"\r\n");
            }
            reply => self.tail.extend_from_slice(&match protocol {
                Protocol::Resp2 => resp2::frame_to_bytes(&reply.resp2()),
                Protocol::Resp3 => resp3::frame_to_bytes(&reply.resp3()),
            }),
        }
    }

    /// Adds a line that begins with the sign of its type.
    fn line(&mut self, sign: u8, content: impl Display) {
        write!(self.tail, "{}{content}\r\n", sign as char).expect("memory can be written");
    }

    /// The next bytes to be written; `None` if there are none.
    pub(crate) fn part(&mut self) -> Option<&[u8]> {
        if self.parts.is_empty() && !self.tail.is_empty() {
            self.parts.push_back(std::mem::take(&mut self.tail).freeze());
        }
        self.parts.front().map(|part| &part[..])
    }

    /// Says that so many bytes of [`Output::part`] were written.
    pub(crate) fn advance(&mut self, written: usize) {
        let Some(part) = self.parts.front_mut() else { return };
        part.advance(written);
        if part.is_empty() {
            self.parts.pop_front();
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum::<usize>() + self.tail.len()
    }
}

#[cfg(test)]
mod tests;
