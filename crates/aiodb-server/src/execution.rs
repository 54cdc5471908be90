//! Carrying out commands: lock, read, run, write, wait. What reads and writes goes through the engine's futures, so that
//! all connections share its reads in flight and its writes of the device; the commands themselves never wait.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures::{FutureExt, poll};
use tokio::time::Instant;

use crate::acl::{Denial, Place};
use crate::admission::{denial, find};
use crate::collection::Owner;
use crate::command::{Call, Context, Run, Server, now_ms};
use crate::keyspace::Keyspace;
use crate::locks::{Claim, Key, KeySet};
use crate::packed::Packed;
use crate::refusal::{Refusal, said, words};
use crate::reply::{Answer, OK, Reply};
use crate::session::{Session, Waiting};
use crate::slow_log::{Sent, Waits};
use crate::space::{Space, Stored};
use crate::waiters::{Waiter, parse_timeout};
use crate::watch::Watch;

/// Calls that go through more collections than these take long.
const FEW_COLLECTIONS: usize = 16;

/// Why calls were not carried out, or not for good.
enum Failure {
    /// Nothing has changed.
    Before(Refusal),
    /// They were, but it is unknown whether their writes are durable.
    After(Refusal),
    /// A watched key was changed.
    Broken,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Before(refusal)
    }
}

/// Answers calls that a client has sent at once, in their order. Either there is one, or all are [`Run::Grouped`].
pub(crate) async fn answer(server: &Server, session: &mut Session, calls: &[Call]) -> Vec<Reply> {
    let begun = Instant::now();
    session.waits = Waits::default();
    let replies = match calls {
        [call] if matches!(call.command.run, Run::Exec) => vec![execute(server, session).await.into()],
        [call] if matches!(call.command.run, Run::Watch) => vec![watch(server, session, call).await.into()],
        calls => answer_group(server, session, calls).await,
    };
    note(server, session, calls, &replies, begun);
    replies
}

/// Counts commands that were carried out since then, and their errors, and keeps those that took long. What each took of the time
/// that they took together is not known: all count alike.
fn note(server: &Server, session: &Session, calls: &[Call], replies: &[Reply], begun: Instant) {
    let errors = replies.iter().filter(|reply| matches!(reply, Reply::Error(_))).count();
    if errors > 0 {
        server.statistics.errors.fetch_add(errors as u64, Ordering::Relaxed);
    }
    // A client that waits has one command, however often it is tried.
    if !session.waiting.as_ref().is_some_and(|waiting| waiting.has_waited) {
        server.statistics.commands.fetch_add(calls.len() as u64, Ordering::Relaxed);
    }
    let Ok(least_us) = u64::try_from(server.settings.slower_than_us()) else { return };
    let took = begun.elapsed() / calls.len().max(1) as u32;
    if took >= Duration::from_micros(least_us) {
        for call in calls.iter().filter(|call| !call.command.has_flag("skip_slowlog")) {
            let sent = Sent { name: call.command.name, arguments: &call.arguments };
            server.log.slow(&session.client, sent, took, &session.waits);
            server.slow_log.add(&session.client, sent, took, now_ms() / 1000, server.settings.slow_commands());
        }
    }
}

async fn answer_group(server: &Server, session: &mut Session, calls: &[Call]) -> Vec<Reply> {
    match carry_out(server, session, calls, None).await {
        Ok(replies) => replies,
        Err(Failure::Before(refusal)) if calls.len() == 1 => vec![Err(refusal).into()],
        Err(Failure::Before(_)) => {
            // One call failed and took the others with it: each is tried by itself.
            let mut replies = Vec::with_capacity(calls.len());
            for call in calls {
                let alone = carry_out(server, session, std::slice::from_ref(call), None).await;
                replies.extend(alone.unwrap_or_else(|failure| vec![failure.reply()]));
            }
            replies
        }
        Err(failure) => calls.iter().map(|_| failure.reply()).collect(),
    }
}

impl Failure {
    fn reply(&self) -> Reply {
        match self {
            Failure::Before(refusal) | Failure::After(refusal) => Err(refusal.clone()).into(),
            Failure::Broken => Reply::NilArray,
        }
    }
}

/// EXEC.
async fn execute(server: &Server, session: &mut Session) -> Answer {
    let transaction = session.transaction.take().ok_or(words("ERR EXEC without MULTI"))?;
    session.show_transaction();
    let watch = std::mem::take(&mut session.watch);
    let database = session.database;
    let outcome = if transaction.is_refused {
        Err(Failure::Before(words("EXECABORT Transaction discarded because of previous errors.")))
    } else {
        let call = |request| Ok(Call { command: find(server, &request)?, arguments: request });
        let calls = transaction.requests.into_iter().map(call).collect::<Result<Vec<_>, Refusal>>()?;
        let begun = Instant::now();
        session.is_executing = true;
        let outcome = carry_out(server, session, &calls, Some(&watch)).await;
        session.is_executing = false;
        if let Ok(replies) = &outcome {
            note(server, session, &calls, replies, begun);
        }
        outcome
    };
    server.keyspace.watchers.remove(watch);
    if matches!(outcome, Err(Failure::Before(_))) {
        // Not even its SELECT was done.
        session.select(database);
    }
    outcome.map_or_else(|failure| Ok(failure.reply()), |replies| Ok(Reply::Array(replies)))
}

/// WATCH.
async fn watch(server: &Server, session: &mut Session, call: &Call) -> Answer {
    if session.transaction.is_some() {
        return Err(words("ERR WATCH inside MULTI is not allowed"));
    }
    let keys: Vec<Key> = call.command.keys.of(&call.arguments).map(|name| session.key(&detached(name))).collect();
    let _held = server.keyspace.claim(&Claim::on_keys(keys.iter().map(|key| (key, false)))).await;
    for key in keys {
        let entry = server.keyspace.get(&key).await?;
        let expires_ms = entry.filter(|entry| !entry.has_expired(now_ms())).and_then(|entry| entry.expires_ms);
        server.keyspace.watchers.add(&mut session.watch, key, expires_ms);
    }
    Ok(OK)
}

/// A call of a client that waits until it is not answered with nothing: in the queues of its keys until it is dropped.
pub(crate) struct Wait<'a> {
    server: &'a Server,
    call: &'a Call,
    keys: Arc<[Key]>,
    waiter: Arc<Waiter>,
    /// When the client has waited long enough; for some there is no such time.
    ends: Option<Instant>,
    has_waited: bool,
}

impl<'a> Wait<'a> {
    /// `None` for a call that does not wait.
    pub(crate) fn of(server: &'a Server, session: &Session, call: &'a Call) -> Option<Wait<'a>> {
        let Run::Blocking(_, awaits) = call.command.run else { return None };
        let names = call.command.keys.of(&call.arguments).take(awaits.most_keys);
        let keys: Arc<[Key]> = names.map(|name| session.key(&detached(name))).collect();
        // A wrong time is for the command to refuse.
        let timeout = parse_timeout((awaits.timeout)(&call.arguments), now_ms()).ok().flatten();
        let ends = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let waiter = server.keyspace.waiters.add(&keys, awaits.kind);
        Some(Wait { server, call, keys, waiter, ends, has_waited: false })
    }

    /// Tries once; `None` if there was nothing.
    pub(crate) async fn attempt(&mut self, session: &mut Session) -> Option<Reply> {
        let (keys, waiter) = (Arc::clone(&self.keys), Arc::clone(&self.waiter));
        session.waiting = Some(Waiting { keys, waiter, has_waited: self.has_waited });
        let reply = answer(self.server, session, std::slice::from_ref(self.call)).await.pop();
        session.waiting = None;
        self.has_waited = true;
        reply.filter(|reply| !matches!(reply, Reply::Nil | Reply::NilArray))
    }

    /// Waits until another attempt may find something, or the time is over; whether it is not.
    pub(crate) async fn woken(&self) -> bool {
        match self.ends {
            None => self.waiter.woken().await,
            Some(ends) => return tokio::time::timeout_at(ends, self.waiter.woken()).await.is_ok(),
        }
        true
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.server.keyspace.waiters.remove(&self.keys, &self.waiter);
    }
}

/// A copy that does not keep what the bytes came in.
fn detached(bytes: &bytes::Bytes) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(bytes)
}

/// What calls need before they run.
struct Plan {
    /// Keys whose entries are read, each once.
    reads: KeySet,
    claim: Claim,
    /// Whether they may read keys that are not known before, and so wait for the device.
    is_whole: bool,
}

fn plan(session: &Session, calls: &[Call], watch: Option<&Watch>) -> Plan {
    let (mut reads, mut keys, mut writes) = (KeySet::default(), Vec::new(), false);
    for call in calls {
        let (is_write, is_read) = (call.command.is_write, call.reads());
        writes |= is_write;
        for name in call.command.keys.of(&call.arguments) {
            let key = session.key(name);
            if is_read {
                reads.insert(key.clone());
            }
            keys.push((key, is_write));
        }
    }
    let is_whole = calls.iter().any(|call| !call.names_keys());
    let is_transaction = watch.is_some();
    // Several reads show one moment under a claim only. Without it, of two calls the later one might show an older moment: the keys are
    // read in no order.
    let reads_several = reads.len() > 1
        || calls.iter().any(|call| call.reads_elements() || call.command.keys.of(&call.arguments).nth(1).is_some());
    let watched = watch.into_iter().flat_map(Watch::keys).map(|key| (key, false));
    // A script does not say whether it writes, nor does it name all keys.
    let has_script = || calls.iter().any(|call| matches!(call.command.run, Run::Script(_)));
    let claim = if is_whole && (writes || is_transaction || has_script()) {
        Claim::Everything
    } else if writes || is_transaction || reads_several {
        Claim::on_keys(keys.iter().map(|(key, is_write)| (key, *is_write)).chain(watched))
    } else {
        Claim::Nothing
    };
    Plan { reads, claim, is_whole }
}

/// The keys of calls that go through elements of collections, and the collections that these have in the store.
fn ranged<'b>(
    space: &'b Space<'_>,
    session: &'b Session,
    calls: &'b [Call],
) -> impl Iterator<Item = (Key, Owner)> + 'b {
    let ranged = calls.iter().filter(|call| matches!(call.command.run, Run::Ranged(_)));
    let keys = ranged.flat_map(|call| call.command.keys.of(&call.arguments)).map(|name| session.key(name));
    keys.filter_map(|key| space.stored_collection(&key).map(|(owner, _)| (key, owner)))
}

/// Whether calls go through collections of which not all is known, or through many: then they take long, or wait for the device.
fn take_long(space: &Space<'_>, session: &Session, calls: &[Call]) -> bool {
    let mut ranged = ranged(space, session, calls).enumerate();
    ranged.any(|(number, (_, owner))| number == FEW_COLLECTIONS || !space.elements.has_all(owner))
}

/// Keeps small collections that calls have gone through. Of those that they have changed too, the write keeps what they have made.
fn keep_read(space: &mut Space<'_>, keyspace: &Keyspace, session: &Session, calls: &[Call]) {
    let mut read = space.elements.take_read();
    if read.is_empty() {
        return;
    }
    for (key, owner) in ranged(space, session, calls) {
        if space.is_unchanged(&key)
            && let Some(packed) = read.remove(&owner)
        {
            keyspace.keep_packed(&key, owner, packed);
        }
    }
}

/// Carries out calls at one moment. With a watch they are a transaction, which is given up if the watch is broken.
async fn carry_out(
    server: &Server,
    session: &mut Session,
    calls: &[Call],
    watch: Option<&Watch>,
) -> Result<Vec<Reply>, Failure> {
    let keyspace = &server.keyspace;
    let plan = plan(session, calls, watch);
    let held = keyspace.claim(&plan.claim).await;
    let now_ms = now_ms();
    if watch.is_some_and(|watch| watch.is_broken(now_ms)) {
        return Err(Failure::Broken);
    }
    let mut space = Space::new(keyspace, now_ms);
    let mut waits = session.waits;
    read_ahead(&mut space, &plan, keyspace, session, calls, &mut waits).await?;
    session.waits = waits;
    let waits = plan.is_whole || take_long(&space, session, calls);
    let replies = run(server, session, &mut space, calls, waits)?;
    keep_read(&mut space, keyspace, session, calls);
    let written = if space.is_changed() {
        read_changed(&mut space, keyspace, &mut session.waits).await?;
        let sequence = keyspace.write(&space.changes()).await?;
        keyspace.watchers.touch(space.touched());
        keyspace.waiters.wake(space.touched());
        Some(sequence)
    } else {
        None
    };
    if !space.published.is_empty() {
        // What was read may be in a message too.
        server.channels.publish(std::mem::take(&mut space.published), written.or_else(|| keyspace.last_awaited()));
    }
    drop(held);
    if let (Some(_), Some(waiting)) = (written, &session.waiting) {
        // Whoever comes next need not wait until this is durable.
        keyspace.waiters.remove(&waiting.keys, &waiting.waiter);
    }
    let begun = keyspace.flushes().then(Instant::now);
    let waited = match written {
        Some(sequence) => keyspace.wait(sequence).await,
        None => keyspace.wait_for_seen((!plan.is_whole).then(|| plan.reads.iter())).await,
    };
    session.waits.flush += begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    waited.map_err(Failure::After)?;
    Ok(replies)
}

/// Reads what the calls name: the entries of keys, and then the elements of their collections.
async fn read_ahead(
    space: &mut Space<'_>,
    plan: &Plan,
    keyspace: &Keyspace,
    session: &Session,
    calls: &[Call],
    waits: &mut Waits,
) -> Result<(), Refusal> {
    read(space, keyspace, plan.reads.iter().cloned(), waits).await?;
    learn_packed(space, keyspace, session, calls);
    let mut elements = HashSet::new();
    // As the calls so far leave them.
    let mut collections = HashMap::new();
    for call in calls.iter().filter(|call| call.command.names_elements()) {
        for (number, name) in call.command.keys.of(&call.arguments).enumerate() {
            let Some((owner, collection)) = space.stored_collection(&session.key(name)) else { continue };
            if space.elements.has_all(owner) {
                continue;
            }
            let members = call.command.members.of(&call.arguments);
            elements.extend(members.map(|name| (owner, collection.kind.element_name(name))));
            if let Some(ahead) = call.command.ahead.filter(|_| number == 0) {
                let left = collections.entry(owner).or_insert(collection);
                elements.extend(ahead(&call.arguments, left).into_iter().map(|name| (owner, name)));
            }
        }
    }
    let mut waiting = Vec::new();
    for (owner, name) in elements {
        let mut read = Box::pin(async move {
            let value = keyspace.element(owner, &name).await;
            (owner, name, value)
        });
        match poll!(&mut read) {
            Poll::Ready((owner, name, value)) => space.elements.learn(owner, name, value?),
            Poll::Pending => waiting.push(read),
        }
    }
    for (owner, name, value) in waits.read(waiting).await {
        space.elements.learn(owner, name, value?);
    }
    Ok(())
}

/// Takes the elements of small collections that were read or written lately.
fn learn_packed(space: &mut Space<'_>, keyspace: &Keyspace, session: &Session, calls: &[Call]) {
    for call in calls.iter().filter(|call| call.reads_elements()) {
        for name in call.command.keys.of(&call.arguments) {
            let key = session.key(name);
            if let Some((owner, collection)) = space.stored_collection(&key)
                && Packed::may_have(collection.count)
                && !space.elements.has_all(owner)
                && let Some(packed) = keyspace.packed(owner)
            {
                space.elements.learn_all(owner, packed);
            }
        }
    }
}

/// Reads of keys that were changed unread what the store has under them. No value is kept.
async fn read_changed(space: &mut Space<'_>, keyspace: &Keyspace, waits: &mut Waits) -> Result<(), Refusal> {
    let unread: Vec<Key> = space.unread().cloned().collect();
    let mut waiting = Vec::new();
    for key in unread {
        let mut get = keyspace.get(&key).map(|entry| entry.map(|entry| entry.as_ref().map(Stored::of)));
        match poll!(&mut get) {
            Poll::Ready(stored) => space.learn_unread(&key, stored)?,
            Poll::Pending => waiting.push(async move { (key, get.await) }),
        }
    }
    for (key, stored) in waits.read(waiting).await {
        space.learn_unread(&key, stored)?;
    }
    Ok(())
}

/// Reads the entries of keys.
async fn read(
    space: &mut Space<'_>,
    keyspace: &Keyspace,
    keys: impl Iterator<Item = Key>,
    waits: &mut Waits,
) -> Result<(), Refusal> {
    // Those that need the device are on their way before one of them is waited for. Most need none.
    let mut waiting = Vec::new();
    for key in keys {
        let mut get = keyspace.get(&key);
        match poll!(&mut get) {
            Poll::Ready(entry) => space.learn(key, entry?),
            Poll::Pending => waiting.push(async move { (key, get.await) }),
        }
    }
    for (key, entry) in waits.read(waiting).await {
        space.learn(key, entry?);
    }
    Ok(())
}

/// Runs the handlers of calls, which see what is in the space.
fn run(
    server: &Server,
    session: &mut Session,
    space: &mut Space<'_>,
    calls: &[Call],
    waits: bool,
) -> Result<Vec<Reply>, Refusal> {
    let mut context = Context { server, session, space };
    let mut run_all = || calls.iter().map(|call| run_one(&mut context, call)).collect();
    // While the commands may wait for the device, another thread takes this thread's other connections.
    if waits { tokio::task::block_in_place(run_all) } else { run_all() }
}

fn run_one(context: &mut Context<'_, '_>, call: &Call) -> Result<Reply, Refusal> {
    // Since the command was kept, the rights of its client may have changed, also by one before it.
    if context.session.is_executing
        && let Some(denial) = denial(context.server, context.session, call.command, &call.arguments, Place::Transaction)
    {
        let reason = match denial {
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => "no permission to access one of the channels used as arguments",
        };
        let refusal = said(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is \
             no longer allowed for the following reason: {reason}"
        ));
        return Ok(Err(refusal).into());
    }
    let handler = call.command.run.handler().expect("no such call waits for EXEC or comes in a group");
    match handler(context, &call.arguments) {
        // The command may have changed a part of what it was to change: nothing of the group is written.
        Err(refusal) if refusal.undoes_all() => Err(refusal),
        answer => Ok(answer.into()),
    }
}

#[cfg(test)]
mod tests;
