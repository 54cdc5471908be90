//! One connection: bytes in, replies out, in order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use crate::admission::{Admitted, admit, is_grouped};
use crate::channels::Message;
use crate::client::{Client, Unblocked};
use crate::command::{Call, Run, Server};
use crate::execution;
use crate::refusal::{Refusal, words};
use crate::reply::{Output, Reply};
use crate::request::{Decoder, Fault, Request, is_http};
use crate::session::Session;
use crate::stream::Stream;

/// What is read at a time.
const READ_BYTES: usize = 16 << 10;

/// Bytes that are read from a client that waits.
const MOST_AHEAD: usize = 1 << 20;

/// Commands that are carried out together: so many at first, and at most.
const FIRST_GROUP: usize = 8;
const MOST_GROUP: usize = 128;

/// Bytes of arguments that go into a group.
const GROUP_BYTES: usize = 1 << 20;

/// Groups whose replies are shorter may grow, those whose replies are longer become small.
const SHORT_REPLIES: usize = 256 << 10;
const LONG_REPLIES: usize = 1 << 20;

/// Replies that are shorter are sent when the other connections that are ready have been answered too. The first reply wakes the client's
/// process, which costs as much as a command; the others find it awake. Longer ones are not kept, since so many connections may have some.
const SENT_TOGETHER: usize = 16 << 10;

/// So many clients are answered at once: each waits for its reply before it asks again, and there is nothing to be saved.
const FEW_CLIENTS: usize = 3;

/// What a client is told whose waiting another one has ended.
const UNBLOCKED: Refusal = words("UNBLOCKED client unblocked via CLIENT UNBLOCK");

/// A connection until it ends.
pub(crate) struct Connection {
    server: Arc<Server>,
    stream: Stream,
    session: Session,
    decoder: Decoder,
    buffer: BytesMut,
    output: Output,
    /// A request that cannot go with those before it. Its client may take long to take their replies: whether it may be carried out is
    /// asked again then.
    waiting: Option<Request>,
    /// Commands that the next group may have, by how long the replies of the last ones were.
    most: usize,
}

/// What comes next from a client.
#[derive(Default)]
struct Group {
    /// In order; a call's reply is still to come.
    replies: Vec<Option<Reply>>,
    calls: Vec<Call>,
    fault: Option<Fault>,
}

impl Connection {
    pub(crate) fn new(server: Arc<Server>, stream: Stream, client: Arc<Client>) -> Connection {
        let session = Session::new(client);
        Connection {
            server,
            stream,
            session,
            decoder: Decoder::default(),
            buffer: BytesMut::new(),
            output: Output::default(),
            waiting: None,
            most: FIRST_GROUP,
        }
    }

    /// Answers until the client goes away, breaks the protocol, is killed, or the server ends.
    pub(crate) async fn serve(mut self, mut ending: watch::Receiver<bool>) {
        // A client that goes away is no failure of the server.
        let _ = self.answer_all(&mut ending).await;
        self.leave();
        self.stream.close().await;
    }

    /// Gives back what the server keeps for the connection; once more does no harm.
    fn leave(&mut self) {
        self.server.keyspace.watchers.remove(std::mem::take(&mut self.session.watch));
        self.session.subscriptions.end(&self.server.channels, &self.session.client);
        self.server.clients.remove(&self.session.client);
    }

    async fn answer_all(&mut self, ending: &mut watch::Receiver<bool>) -> io::Result<()> {
        while !self.session.is_ending && !self.session.client.is_killed() && !*ending.borrow() {
            if self.push_messages().await {
                self.send().await?;
            }
            let group = self.next_group();
            if group.replies.is_empty() && group.fault.is_none() {
                if self.session.is_ending || !self.receive(ending).await? {
                    return Ok(());
                }
                continue;
            }
            // A client that sends without end does not keep the thread from other connections.
            for _ in 0..group.replies.len() {
                consume_budget().await;
            }
            // A connection that waits for its client keeps no memory for what answers take.
            Box::pin(self.answer_group(group, ending)).await?;
        }
        Ok(())
    }

    /// Takes what can be carried out together from the requests that have come.
    fn next_group(&mut self) -> Group {
        let mut group = Group::default();
        let mut bytes = 0;
        while group.is_open() && group.replies.len() < self.most && bytes < GROUP_BYTES && !self.session.is_ending {
            let is_known = !self.session.must_log_in(&self.server.acl);
            let next = match self.waiting.take() {
                Some(request) => Ok(Some(request)),
                None => self.decoder.next(&mut self.buffer, is_known),
            };
            match next {
                Ok(None) => break,
                Err(fault) => {
                    group.fault = Some(fault);
                    break;
                }
                Ok(Some(request)) if is_http(&request) => {
                    self.server.log.http(&self.session.client);
                    self.session.is_ending = true;
                    // Neither is anything carried out that came with it.
                    return Group::default();
                }
                Ok(Some(request)) => match admit(&self.server, &mut self.session, request) {
                    Admitted::Answered(reply) => group.replies.push(Some(reply)),
                    Admitted::Call(call) if !is_grouped(&call) && !group.calls.is_empty() => {
                        self.waiting = Some(call.arguments);
                        break;
                    }
                    Admitted::Call(call) => {
                        bytes += call.bytes();
                        group.add(call);
                    }
                },
            }
        }
        group
    }

    async fn answer_group(&mut self, group: Group, ending: &mut watch::Receiver<bool>) -> io::Result<()> {
        let answers = match &group.calls[..] {
            [] => Vec::new(),
            [call] if matches!(call.command.run, Run::Blocking(..)) => vec![self.wait_for(call, ending).await?],
            calls => execution::answer(&self.server, &mut self.session, calls).await,
        };
        // What the client publishes to itself comes before the reply that says so, and after one that begins to listen.
        if group.calls.iter().all(is_grouped) {
            self.push_messages().await;
        }
        let early = std::mem::take(&mut self.session.subscriptions.early);
        self.push_durable(early).await;
        let mut answers = answers.into_iter();
        for reply in group.replies {
            let reply = reply.unwrap_or_else(|| answers.next().expect("each call has an answer"));
            self.output.push(reply, self.session.protocol);
        }
        match group.fault {
            None => {}
            Some(Fault::TooLong) => self.session.is_ending = true,
            Some(Fault::Protocol(reason)) => {
                let refusal = Refusal::Bytes([b"ERR Protocol error: ", &reason[..]].concat().into());
                self.output.push(Err(refusal).into(), self.session.protocol);
                self.session.is_ending = true;
            }
        }
        self.most = match self.output.len() {
            length if length > LONG_REPLIES => 1,
            length if length < SHORT_REPLIES => (self.most * 2).min(MOST_GROUP),
            _ => self.most,
        };
        if self.output.len() < SENT_TOGETHER && self.server.clients.count() > FEW_CLIENTS {
            yield_now().await;
        }
        self.send().await
    }

    /// The reply to a call that waits. What the client sends meanwhile stays for later.
    async fn wait_for(&mut self, call: &Call, ending: &mut watch::Receiver<bool>) -> io::Result<Reply> {
        let (server, client) = (Arc::clone(&self.server), Arc::clone(&self.session.client));
        let Some(mut wait) = execution::Wait::of(&server, &self.session, call) else { return Ok(Reply::Nil) };
        loop {
            if let Some(reply) = wait.attempt(&mut self.session).await {
                return Ok(reply);
            }
            client.begin_to_wait();
            let is_in_time = tokio::select! {
                is_in_time = wait.woken() => is_in_time,
                () = client.unblocked() => true,
                () = self.gone(ending) => return Err(io::ErrorKind::ConnectionAborted.into()),
            };
            match client.end_to_wait() {
                Some(Unblocked::WithError) => return Ok(Err(UNBLOCKED).into()),
                Some(Unblocked::TimedOut) => return Ok(Reply::NilArray),
                None if !is_in_time => return Ok(Reply::NilArray),
                None => {}
            }
        }
    }

    /// Returns when nobody waits for a reply any more: the client is gone or killed, or the server ends.
    async fn gone(&mut self, ending: &mut watch::Receiver<bool>) {
        let client = Arc::clone(&self.session.client);
        while !*ending.borrow() {
            // Another round goes on where this one is cut off.
            self.push_messages().await;
            if self.send().await.is_err() {
                return;
            }
            let is_there = if self.buffer.len() < MOST_AHEAD {
                self.receive(ending).await.unwrap_or(false)
            } else {
                tokio::select! {
                    () = client.killed() => false,
                    () = self.stream.hung_up() => false,
                    _ = ending.changed() => true,
                }
            };
            if !is_there {
                return;
            }
        }
    }

    /// Puts the next messages for the client behind the replies; whether there are any. None is lost if this is cut off.
    async fn push_messages(&mut self) -> bool {
        let Some(inbox) = self.session.subscriptions.inbox().cloned() else { return false };
        let (count, after) = inbox.next();
        if let Some(after) = after {
            // After a failure the messages are as little shown as the writes before them.
            let is_durable = self.server.keyspace.wait(after).await.is_ok();
            if !is_durable {
                inbox.take(count);
                return false;
            }
        }
        inbox.take(count).into_iter().for_each(|message| self.output.push(message.reply(), self.session.protocol));
        count > 0
    }

    /// [`Connection::push_messages`] of messages that were taken already.
    async fn push_durable(&mut self, messages: Vec<Message>) {
        for message in messages {
            let is_durable = match message.after() {
                Some(after) => self.server.keyspace.wait(after).await.is_ok(),
                None => true,
            };
            if is_durable {
                self.output.push(message.reply(), self.session.protocol);
            }
        }
    }

    /// Gives the client its replies. Nothing else of this connection goes on until it has taken them. What is not sent yet when
    /// this is cut off is kept.
    async fn send(&mut self) -> io::Result<()> {
        let client = Arc::clone(&self.session.client);
        let counter = &self.server.statistics.output_bytes;
        counter.fetch_add(self.output.len() as u64, Ordering::Relaxed);
        client.shown.output_bytes.store(self.output.len(), Ordering::Relaxed);
        let (stream, output) = (&mut self.stream, &mut self.output);
        let write_all = async {
            while let Some(part) = output.part() {
                match stream.write(part).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => output.advance(written),
                }
            }
            stream.flush().await
        };
        let sent = tokio::select! {
            sent = write_all => sent,
            () = client.killed() => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        client.shown.output_bytes.store(0, Ordering::Relaxed);
        sent
    }

    /// Waits for more bytes; false if none will come.
    async fn receive(&mut self, ending: &mut watch::Receiver<bool>) -> io::Result<bool> {
        if self.buffer.is_empty() && self.decoder.is_between_requests() {
            // A connection that waits keeps no memory for what it might be sent.
            self.buffer = BytesMut::new();
        }
        let client = Arc::clone(&self.session.client);
        let inbox = self.session.subscriptions.inbox();
        let message = async {
            match inbox {
                Some(inbox) => inbox.arrived().await,
                None => std::future::pending().await,
            }
        };
        // The buffer at most doubles, so that a client gets no memory for bytes that it only announces.
        let room = self.decoder.wanted(&self.buffer).min(self.buffer.len()).max(READ_BYTES);
        let received = tokio::select! {
            received = self.stream.read(&mut self.buffer, room) => received?,
            () = client.killed() => return Ok(false),
            () = message => return Ok(true),
            // A sender that is gone means the same: the server has ended.
            _ = ending.changed() => return Ok(true),
        };
        self.server.statistics.input_bytes.fetch_add(received as u64, Ordering::Relaxed);
        client.shown.input_bytes.store(self.buffer.len(), Ordering::Relaxed);
        Ok(received > 0)
    }
}

impl Drop for Connection {
    /// A connection that a panic ends, or the end of the server, keeps nothing either.
    fn drop(&mut self) {
        self.leave();
    }
}

impl Group {
    fn add(&mut self, call: Call) {
        self.replies.push(None);
        self.calls.push(call);
    }

    /// Whether more may be added.
    fn is_open(&self) -> bool {
        self.calls.last().is_none_or(is_grouped)
    }
}

#[cfg(test)]
mod tests;
