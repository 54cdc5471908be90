//! Commands from a file, carried out on a store that no server has: what Redis's append-only file has, and what clients send through
//! `redis-cli --pipe`.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};

use bytes::BytesMut;

use crate::acl::Acl;
use crate::admission::{Admitted, admit, is_grouped};
use crate::command::{Call, Run, Server};
use crate::config::Config;
use crate::keyspace::Keyspace;
use crate::log::Log;
use crate::refusal::{Refusal, words};
use crate::reply::Reply;
use crate::request::{Decoder, Fault, Request};
use crate::server::{ServeError, store_options};
use crate::session::Session;
use crate::{commands, execution};

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// Commands that are carried out together, at most, and bytes of their arguments, about.
const MOST_GROUP: usize = 128;
const GROUP_BYTES: usize = 1 << 20;

/// How a comment of an append-only file begins, as the time of what follows.
const COMMENT: u8 = b'#';

/// What a load tells as it goes on.
pub enum Event<'a> {
    /// So many commands have been dealt with, in so many bytes.
    Progress {
        /** Commands, those that were passed over included. */
        commands: u64,
        /** Bytes of the input. */
        bytes: u64,
    },
    /// A command was answered with an error.
    Refused {
        /** Its number in the input, from 1. */
        number: u64,
        /** What it was answered. */
        reason: &'a str,
    },
}

/// How far a load has come. What it counts is on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Commands that have been dealt with, those that were passed over included, and of a transaction without its end none: a load that
    /// goes on passes over so many.
    pub commands: u64,
    /// Those of them that were answered with an error.
    pub refused: u64,
    /// Bytes of the input that were read.
    pub bytes: u64,
}

/// Why a load ended before its input.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store cannot be opened or closed, or what was written cannot be made durable; or it refused a command, because there is no room or
    /// because it failed: then neither that command nor one behind it was carried out.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The input cannot be read.
    #[error("{0}")]
    Input(#[from] io::Error),
    /// What comes is no command.
    #[error("after command {after}: {reason}; only arrays of strings and lines of words are commands")]
    Protocol {
        /** Commands before it. */
        after: u64,
        /** What is wrong, in Redis's words. */
        reason: String,
    },
    /// The input ends within a command or a transaction.
    #[error("the input ends within {what} after command {after}: it was cut off")]
    CutOff {
        /** Of what the end is missing. */
        what: &'static str,
        /** Commands before it. */
        after: u64,
    },
}

impl From<aiodb::Error> for LoadError {
    fn from(error: aiodb::Error) -> LoadError {
        LoadError::Serve(error.into())
    }
}

/// Carries out the commands of an input, after so many that are passed over (their SELECTs count), as long as `watch` returns true.
/// They are made durable at the end, whatever that is: then the result says how far it came, and why it came no further. A command that is
/// refused for what it says is dealt with by that; one that the store refuses ends the load, and another load can begin with it. What else
/// has the settings as a server has them, of which directory, databases, durability and memory matter.
pub fn load(
    config: Config,
    input: impl Read,
    passed_over: u64,
    watch: impl FnMut(Event<'_>) -> bool,
) -> Result<(Loaded, Option<LoadError>), ServeError> {
    let table = commands::table();
    let acl = Acl::new(table.catalog(), &config)?;
    let (options, division) = (store_options(&config)?, config.division()?);
    let log = Log::new(|line| eprintln!("aiodb: {}", line.message));
    let keyspace = Keyspace::open(&config.dir, config.databases, options, &|line: &str| log.say(line))?;
    keyspace.failures.watch();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|cause| ServeError::System { action: "start threads", cause })?;
    let server = Server::new((config, division), keyspace, table, acl, None, 0, log);
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let client = server.clients.add(nobody, nobody, 0, server.acl.default_user(), 1);
    let session = Session::new(client.expect("nobody else is connected"));
    let (decoder, buffer) = (Decoder::default(), BytesMut::new());
    let mut load = Load { server: &server, session, input, decoder, buffer, passed_over, whole: 0, watch };
    let mut loaded = Loaded::default();
    // The commands may wait for the device, for which a thread of the runtime is needed.
    let ended = runtime.block_on(load.run(&mut loaded));
    loaded.commands = load.whole;
    server.keyspace.sync()?;
    let closed = server.keyspace.close();
    match ended {
        Ok(()) => closed.map(|()| (loaded, None)).map_err(ServeError::from),
        // What ended the load comes first, and says how far it came.
        Err(error) => Ok((loaded, Some(error))),
    }
}

/// A load under way.
struct Load<'a, R, W> {
    server: &'a Server,
    session: Session,
    input: R,
    decoder: Decoder,
    buffer: BytesMut,
    passed_over: u64,
    /// Commands up to the last one that is not in a transaction under way.
    whole: u64,
    watch: W,
}

impl<R: Read, W: FnMut(Event<'_>) -> bool> Load<'_, R, W> {
    async fn run(&mut self, loaded: &mut Loaded) -> Result<(), LoadError> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut goes_on = true;
        while goes_on {
            let request = match self.next(loaded, group.len() as u64) {
                Ok(Some(request)) => request,
                ended => {
                    self.carry_out(&mut group, loaded).await?;
                    return ended.and_then(|_| self.check_end(loaded.commands));
                }
            };
            let call = match self.take(request, loaded.commands + group.len() as u64) {
                Taken::Call(call) => call,
                Taken::Done(reply) => {
                    goes_on = self.carry_out(&mut group, loaded).await? && self.done(loaded, &[reply]);
                    continue;
                }
            };
            bytes += call.bytes();
            if !is_grouped(&call) {
                goes_on = self.carry_out(&mut group, loaded).await?;
                group.push(call);
                goes_on = goes_on && self.carry_out(&mut group, loaded).await?;
                bytes = 0;
                continue;
            }
            group.push(call);
            if group.len() >= MOST_GROUP || bytes >= GROUP_BYTES {
                goes_on = self.carry_out(&mut group, loaded).await?;
                bytes = 0;
            }
        }
        Ok(())
    }

    /// The next command; `None` at the end of the input.
    fn next(&mut self, loaded: &mut Loaded, waiting: u64) -> Result<Option<Request>, LoadError> {
        let after = loaded.commands + waiting;
        loop {
            match self.decoder.next(&mut self.buffer, true) {
                Ok(Some(request)) if request[0].first() == Some(&COMMENT) => continue,
                Ok(Some(request)) => return Ok(Some(request)),
                Ok(None) => {}
                Err(Fault::TooLong) => {
                    return Err(LoadError::Protocol { after, reason: "a command is too long".into() });
                }
                Err(Fault::Protocol(reason)) => {
                    return Err(LoadError::Protocol { after, reason: String::from_utf8_lossy(&reason).into_owned() });
                }
            }
            let length = self.buffer.len();
            self.buffer.resize(length + READ_BYTES, 0);
            let (buffer, input) = (&mut self.buffer, &mut self.input);
            let read = tokio::task::block_in_place(|| {
                loop {
                    match input.read(&mut buffer[length..]) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        read => return read,
                    }
                }
            });
            self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
            loaded.bytes += read? as u64;
            if self.buffer.len() == length {
                return Ok(None);
            }
        }
    }

    /// What is to be done with a command.
    fn take(&mut self, request: Request, before: u64) -> Taken {
        if before < self.passed_over && !request[0].eq_ignore_ascii_case(b"select") {
            return Taken::Done(Reply::Simple("OK"));
        }
        match admit(self.server, &mut self.session, request) {
            Admitted::Answered(reply) => Taken::Done(reply),
            Admitted::Call(call) if matches!(call.command.run, Run::Blocking(..)) => {
                Taken::Done(Err(words("ERR a command that waits for others cannot be loaded")).into())
            }
            Admitted::Call(call) => Taken::Call(call),
        }
    }

    /// Carries out calls together; whether the load goes on. A call that the store refuses ends it, and none behind that one is carried out.
    async fn carry_out(&mut self, group: &mut Vec<Call>, loaded: &mut Loaded) -> Result<bool, LoadError> {
        let calls = std::mem::take(group);
        if calls.is_empty() {
            return Ok(true);
        }
        let server = self.server;
        let failures = &server.keyspace.failures;
        let replies = execution::answer(server, &mut self.session, &calls).await;
        let Some(failure) = failures.take() else { return Ok(self.done(loaded, &replies)) };
        if calls.len() == 1 {
            return Err(failure.into());
        }
        // The store has refused one of them, or all of them together. Since then it was given no write, so the first that says so was not carried
        // out, and nothing behind it has changed anything. From there on each is tried by itself.
        let refused = Reply::from(Err(Refusal::Engine(failure)));
        let first = replies.iter().position(|reply| *reply == refused).unwrap_or(replies.len());
        let mut goes_on = self.done(loaded, &replies[..first]);
        for call in &calls[first..] {
            if !goes_on {
                break;
            }
            let replies = execution::answer(server, &mut self.session, std::slice::from_ref(call)).await;
            if let Some(failure) = failures.take() {
                return Err(failure.into());
            }
            goes_on = self.done(loaded, &replies);
        }
        Ok(goes_on)
    }

    /// Counts commands that were answered; whether the load goes on.
    fn done(&mut self, loaded: &mut Loaded, replies: &[Reply]) -> bool {
        let mut goes_on = true;
        for reply in replies {
            loaded.commands += 1;
            for reason in errors(reply) {
                loaded.refused += 1;
                goes_on &= (self.watch)(Event::Refused { number: loaded.commands, reason: &reason });
            }
        }
        if self.session.transaction.is_none() {
            self.whole = loaded.commands;
        }
        goes_on & (self.watch)(Event::Progress { commands: loaded.commands, bytes: loaded.bytes })
    }

    fn check_end(&self, after: u64) -> Result<(), LoadError> {
        let what = if !self.buffer.is_empty() || !self.decoder.is_between_requests() {
            "a command"
        } else if self.session.transaction.is_some() {
            "a transaction"
        } else {
            return Ok(());
        };
        Err(LoadError::CutOff { what, after })
    }
}

/// A command that was looked at.
enum Taken {
    Call(Call),
    /// It is answered already, or passed over.
    Done(Reply),
}

/// The errors of a reply, which may be that of EXEC.
fn errors(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Error(line) => vec![String::from_utf8_lossy(line).into_owned()],
        Reply::Array(replies) => replies.iter().flat_map(errors).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
