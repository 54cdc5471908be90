//! Publish and subscribe: who listens to what, and the messages that wait for each client.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use aiodb::Sequence;
use bytes::Bytes;
use tokio::sync::Notify;

use crate::client::Client;
use crate::glob;
use crate::reply::Reply;

/// Bytes of messages that wait for a client, at most: one that does not take them is cut off. As in Redis, where it is the
/// setting `client-output-buffer-limit`.
pub(crate) const MOST_WAITING: usize = 32 << 20;

/// More than this may wait for so long only.
pub(crate) const MANY_WAITING: usize = 8 << 20;
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a message takes besides its bytes.
const MESSAGE_BYTES: usize = 128;

/// Bytes of messages that are taken at a time.
const TAKEN_BYTES: usize = 1 << 20;

/// What clients subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Channel,
    Pattern,
}

/// A message for a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// The pattern by which the client gets it.
    pattern: Option<Bytes>,
    channel: Bytes,
    payload: Bytes,
    /// It may be shown when this write is durable.
    after: Option<Sequence>,
}

impl Message {
    fn bytes(&self) -> usize {
        MESSAGE_BYTES + self.pattern.as_ref().map_or(0, Bytes::len) + self.channel.len() + self.payload.len()
    }

    /// The write that must be durable before the message is shown.
    pub(crate) fn after(&self) -> Option<Sequence> {
        self.after
    }

    /// As it goes to the client.
    pub(crate) fn reply(self) -> Reply {
        let (kind, pattern) = match self.pattern {
            None => ("message", None),
            Some(pattern) => ("pmessage", Some(Reply::Bulk(pattern))),
        };
        let parts = [Reply::text(kind)].into_iter().chain(pattern);
        Reply::Push(parts.chain([Reply::Bulk(self.channel), Reply::Bulk(self.payload)]).collect())
    }
}

/// The messages that wait for one client.
pub(crate) struct Inbox {
    client: Arc<Client>,
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Since when there are many.
    many_since: Option<Instant>,
}

impl Inbox {
    fn new(client: Arc<Client>) -> Inbox {
        Inbox { client, queue: Mutex::default(), arrived: Notify::new() }
    }

    /// Adds a message. A client for whom too many wait is cut off, and gets none of them.
    fn push(&self, message: Message) {
        if self.client.is_killed() {
            return;
        }
        let mut queue = self.lock();
        queue.bytes += message.bytes();
        queue.messages.push_back(message);
        queue.many_since = (queue.bytes > MANY_WAITING).then(|| queue.many_since.unwrap_or_else(Instant::now));
        let is_late = queue.many_since.is_some_and(|since| since.elapsed() > PATIENCE);
        if queue.bytes > MOST_WAITING || is_late {
            *queue = Queue::default();
            self.client.kill();
        }
        self.show(&queue);
        self.arrived.notify_one();
    }

    /// Returns when a message may have come. One task waits at a time.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The write that must be durable before [`Inbox::take`] takes so many messages.
    pub(crate) fn next(&self) -> (usize, Option<Sequence>) {
        let queue = self.lock();
        let (mut count, mut bytes) = (0, 0);
        let first = queue.messages.iter().take_while(|message| {
            let is_taken = bytes < TAKEN_BYTES;
            bytes += message.bytes();
            count += usize::from(is_taken);
            is_taken
        });
        let after = first.filter_map(|message| message.after).max();
        (count, after)
    }

    /// Takes so many messages, the first ones.
    pub(crate) fn take(&self, most: usize) -> Vec<Message> {
        let mut queue = self.lock();
        let count = queue.messages.len().min(most);
        let taken: Vec<Message> = queue.messages.drain(..count).collect();
        queue.bytes -= taken.iter().map(Message::bytes).sum::<usize>();
        if queue.bytes <= MANY_WAITING {
            queue.many_since = None;
        }
        if queue.messages.is_empty() {
            queue.messages = VecDeque::new();
        } else {
            self.arrived.notify_one();
        }
        self.show(&queue);
        taken
    }

    fn show(&self, queue: &Queue) {
        self.client.shown.message_bytes.store(queue.bytes, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds the messages")
    }
}

type Listeners = HashMap<Bytes, BTreeMap<u64, Arc<Inbox>>>;

/// All subscriptions. One lock for all of them: every client gets the messages of a channel in the same order.
#[derive(Default)]
pub(crate) struct Channels {
    listeners: Mutex<[Listeners; 2]>,
}

impl Channels {
    /// How many messages a message to a channel becomes.
    pub(crate) fn receivers(&self, channel: &[u8]) -> usize {
        let [channels, patterns] = &*self.lock();
        let matching = patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
        channels.get(channel).map_or(0, BTreeMap::len) + matching.map(|(_, inboxes)| inboxes.len()).sum::<usize>()
    }

    /// Gives messages, of which each is a channel and what is said there, to those who listen.
    pub(crate) fn publish(&self, messages: Vec<(Bytes, Bytes)>, after: Option<Sequence>) {
        if messages.is_empty() {
            return;
        }
        let [channels, patterns] = &*self.lock();
        for (channel, payload) in messages {
            let message = Message { pattern: None, channel, payload, after };
            let channel = &message.channel;
            channels.get(channel).into_iter().flatten().for_each(|(_, inbox)| inbox.push(message.clone()));
            for (pattern, inboxes) in patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel)) {
                let message = Message { pattern: Some(pattern.clone()), ..message.clone() };
                inboxes.values().for_each(|inbox| inbox.push(message.clone()));
            }
        }
    }

    /// Channels to which somebody listens.
    pub(crate) fn names(&self, mut is_wanted: impl FnMut(&[u8]) -> bool) -> Vec<Bytes> {
        let [channels, _] = &*self.lock();
        channels.keys().filter(|name| is_wanted(name)).cloned().collect()
    }

    /// What some of the clients listen to.
    pub(crate) fn of_clients(&self, is_meant: impl Fn(&Client) -> bool) -> Vec<(Arc<Client>, Topic, Bytes)> {
        let listeners = self.lock();
        let mut found = Vec::new();
        for topic in [Topic::Channel, Topic::Pattern] {
            for (name, inboxes) in &listeners[topic as usize] {
                let meant = inboxes.values().map(|inbox| &inbox.client).filter(|client| is_meant(client));
                found.extend(meant.map(|client| (Arc::clone(client), topic, name.clone())));
            }
        }
        found
    }

    /// How many clients listen to a channel.
    pub(crate) fn count(&self, channel: &[u8]) -> usize {
        let [channels, _] = &*self.lock();
        channels.get(channel).map_or(0, BTreeMap::len)
    }

    /// How many different channels, or patterns, there are.
    pub(crate) fn different(&self, topic: Topic) -> usize {
        self.lock()[topic as usize].len()
    }

    fn add(&self, topic: Topic, name: &Bytes, inbox: &Arc<Inbox>) {
        let listeners = &mut self.lock()[topic as usize];
        listeners.entry(name.clone()).or_default().insert(inbox.client.id, Arc::clone(inbox));
    }

    fn remove(&self, topic: Topic, name: &Bytes, inbox: &Inbox) {
        let listeners = &mut self.lock()[topic as usize];
        let Some(inboxes) = listeners.get_mut(name) else { return };
        inboxes.remove(&inbox.client.id);
        if inboxes.is_empty() {
            listeners.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, [Listeners; 2]> {
        self.listeners.lock().expect("no code panics while it holds the subscriptions")
    }
}

/// What one connection listens to.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// There while there are subscriptions.
    inbox: Option<Arc<Inbox>>,
    names: [BTreeSet<Bytes>; 2],
    /// Messages that came before a subscription ended: the client gets them before the reply that says so.
    pub(crate) early: Vec<Message>,
}

impl Subscriptions {
    /// Where the messages wait, if there may be any.
    pub(crate) fn inbox(&self) -> Option<&Arc<Inbox>> {
        self.inbox.as_ref()
    }

    /// How many subscriptions there are.
    pub(crate) fn count(&self) -> usize {
        self.names.iter().map(BTreeSet::len).sum()
    }

    /// What the connection listens to of a kind.
    pub(crate) fn names(&self, topic: Topic) -> impl Iterator<Item = &Bytes> {
        self.names[topic as usize].iter()
    }

    /// Begins to listen.
    pub(crate) fn add(&mut self, channels: &Channels, client: &Arc<Client>, topic: Topic, name: &Bytes) {
        if self.names[topic as usize].contains(name) {
            return;
        }
        // The name must not keep what it came in.
        let name = Bytes::copy_from_slice(name);
        let inbox = self.inbox.get_or_insert_with(|| Arc::new(Inbox::new(Arc::clone(client))));
        channels.add(topic, &name, inbox);
        self.names[topic as usize].insert(name);
        self.show(client);
    }

    /// Ends to listen. What has come until then is put before the replies.
    pub(crate) fn remove(&mut self, channels: &Channels, client: &Client, topic: Topic, name: &Bytes) {
        let Some(inbox) = self.inbox.as_ref().filter(|_| self.names[topic as usize].remove(name)) else { return };
        channels.remove(topic, name, inbox);
        self.early.extend(inbox.take(usize::MAX));
        if self.names.iter().all(BTreeSet::is_empty) {
            self.inbox = None;
        }
        self.show(client);
    }

    /// Ends all subscriptions; the client gets nothing more.
    pub(crate) fn end(&mut self, channels: &Channels, client: &Client) {
        if let Some(inbox) = &self.inbox {
            for topic in [Topic::Channel, Topic::Pattern] {
                self.names[topic as usize].iter().for_each(|name| channels.remove(topic, name, inbox));
            }
            inbox.take(usize::MAX);
        }
        *self = Subscriptions::default();
        self.show(client);
    }

    fn show(&self, client: &Client) {
        let [channels, patterns] = &self.names;
        client.shown.channels.store(channels.len(), Ordering::Relaxed);
        client.shown.patterns.store(patterns.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
