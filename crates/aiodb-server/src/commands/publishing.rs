//! Publish and subscribe.

use bytes::Bytes;

use super::family::Family;
use crate::channels::Topic;
use crate::command::Run::{Alone, Grouped};
use crate::command::{ChannelNames, Command, Context, count};
use crate::glob;
use crate::refusal::wrong_number;
use crate::reply::{Answer, Reply};

const PUBSUB: Family = Family::new("pubsub", "");
const SUBSCRIBE: Family =
    PUBSUB.flags("pubsub noscript loading stale").complexity("O(N) where N is the number of names");
const PUBLISH: Family = PUBSUB
    .flags("pubsub loading stale fast")
    .complexity("O(N+M) where N is the number of clients that listen to the channel and M the number of all patterns");
const ASK: Family = PUBSUB.flags("pubsub loading stale").complexity("O(N) where N is the number of channels");

pub(super) static COMMANDS: &[Command] = &[
    SUBSCRIBE.channels(ChannelNames::All).command(
        "subscribe",
        -2,
        Alone(subscribe),
        "2.0.0",
        "Listen for messages published to the given channels",
    ),
    SUBSCRIBE.command(
        "unsubscribe",
        -1,
        Alone(unsubscribe),
        "2.0.0",
        "Stop listening for messages posted to the given channels",
    ),
    SUBSCRIBE.channels(ChannelNames::Patterns).command(
        "psubscribe",
        -2,
        Alone(psubscribe),
        "2.0.0",
        "Listen for messages published to channels matching the given patterns",
    ),
    SUBSCRIBE.command(
        "punsubscribe",
        -1,
        Alone(punsubscribe),
        "2.0.0",
        "Stop listening for messages posted to channels matching the given patterns",
    ),
    PUBLISH.channels(ChannelNames::First).command(
        "publish",
        3,
        Grouped(publish),
        "2.0.0",
        "Post a message to a channel",
    ),
    PUBSUB.complexity("Depends on subcommand.").container(
        "pubsub",
        "2.8.0",
        "A container for Pub/Sub commands",
        &[
            ASK.command("pubsub|channels", -2, Grouped(channels), "2.8.0", "List active channels"),
            ASK.command("pubsub|numsub", -2, Grouped(numsub), "2.8.0", "Get the count of subscribers for channels"),
            ASK.command(
                "pubsub|numpat",
                2,
                Grouped(numpat),
                "2.8.0",
                "Get the count of unique patterns pattern subscriptions",
            ),
        ],
    ),
];

fn acknowledged(context: &Context<'_, '_>, what: &'static str, name: Option<Bytes>) -> Reply {
    Reply::Push(vec![Reply::text(what), Reply::bulk_or_nil(name), count(context.session.subscriptions.count())])
}

fn begin(context: &mut Context<'_, '_>, arguments: &[Bytes], topic: Topic, what: &'static str) -> Answer {
    let mut replies = Vec::with_capacity(arguments.len() - 1);
    for name in &arguments[1..] {
        let session = &mut *context.session;
        session.subscriptions.add(&context.server.channels, &session.client, topic, name);
        replies.push(acknowledged(context, what, Some(name.clone())));
    }
    end_if_denied(context, &arguments[1..], topic);
    Ok(Reply::Several(replies))
}

/// Ends a connection whose user has just lost the right to hear this: whoever took it may not have seen yet that the connection listens.
fn end_if_denied(context: &mut Context<'_, '_>, names: &[Bytes], topic: Topic) {
    let session = &context.session;
    let rules = session.user.rules();
    if !names.iter().all(|name| rules.allow_channel(name, topic == Topic::Pattern)) {
        session.client.kill();
    }
}

/// Without names all of a kind end.
fn end(context: &mut Context<'_, '_>, arguments: &[Bytes], topic: Topic, what: &'static str) -> Answer {
    let names = match &arguments[1..] {
        [] => context.session.subscriptions.names(topic).cloned().collect(),
        names => names.to_vec(),
    };
    let mut replies = Vec::with_capacity(names.len());
    for name in names {
        let session = &mut *context.session;
        session.subscriptions.remove(&context.server.channels, &session.client, topic, &name);
        replies.push(acknowledged(context, what, Some(name)));
    }
    if replies.is_empty() {
        replies.push(acknowledged(context, what, None));
    }
    Ok(Reply::Several(replies))
}

fn subscribe(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    begin(context, arguments, Topic::Channel, "subscribe")
}

fn unsubscribe(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    end(context, arguments, Topic::Channel, "unsubscribe")
}

fn psubscribe(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    begin(context, arguments, Topic::Pattern, "psubscribe")
}

fn punsubscribe(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    end(context, arguments, Topic::Pattern, "punsubscribe")
}

/// The message goes out with what else the client has sent at once: after the writes before it.
fn publish(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let receivers = context.server.channels.receivers(&arguments[1]);
    if receivers > 0 {
        // Messages may wait for long: they must not keep what they came in.
        let [channel, payload] = [&arguments[1], &arguments[2]].map(|part| Bytes::copy_from_slice(part));
        context.space.published.push((channel, payload));
    }
    Ok(count(receivers))
}

fn channels(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let names = match &arguments[2..] {
        [] => context.server.channels.names(|_| true),
        [pattern] => context.server.channels.names(|name| glob::matches(pattern, name)),
        _ => return Err(wrong_number(&arguments[1], "PUBSUB")),
    };
    Ok(Reply::Array(names.into_iter().map(Reply::Bulk).collect()))
}

fn numsub(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let number = |name: &Bytes| [Reply::Bulk(name.clone()), count(context.server.channels.count(name))];
    Ok(Reply::Array(arguments[2..].iter().flat_map(number).collect()))
}

fn numpat(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(count(context.server.channels.different(Topic::Pattern)))
}
