//! What a user may do: which commands, with which keys and channels.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use bytes::Bytes;

use super::catalog::{CATEGORIES, Catalog, Listed, category_of};
use crate::glob;

/// Why a rule cannot be; the texts are Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error("Unknown command or category name in ACL")]
    UnknownName,
    #[error("Syntax error")]
    Syntax,
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
         'resetkeys' to start with an empty list of patterns"
    )]
    HasAllKeys,
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try \
         'resetchannels' to start with an empty list of channels"
    )]
    HasAllChannels,
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    #[error("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")]
    NotAHash,
    #[error("Allowing first-arg of a subcommand is not supported")]
    OfSubcommand,
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    reads: bool,
    writes: bool,
}

impl Access {
    /// What Redis's key specifications say with these words. Whether there is a key is for all to know.
    pub(crate) fn of_flags(flags: &str) -> Access {
        let says = |words: &[&str]| flags.split(' ').any(|flag| words.contains(&flag));
        Access { reads: says(&["access"]), writes: says(&["insert", "update", "delete"]) }
    }
}

/// A command that a client sends, as rules see it.
pub(crate) struct Attempt<'a> {
    pub(crate) command: &'static str,
    /// Whether every client may run it: AUTH and its like.
    pub(crate) is_for_all: bool,
    /// With the command's name.
    pub(crate) arguments: &'a [Bytes],
    /// Which arguments are keys, and what becomes of them.
    pub(crate) keys: Vec<(usize, Access)>,
    /// Which arguments are channels.
    pub(crate) channels: Range<usize>,
    /// Whether these are patterns of channels.
    pub(crate) are_patterns: bool,
}

/// What is not allowed of an attempt. In the order in which one of several is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    Command,
    /// The key at this place of the arguments.
    Key(usize),
    /// The channel at this place of the arguments.
    Channel(usize),
}

/// A pattern of keys, and what they may be used for.
#[derive(Clone, Debug)]
struct KeyPattern {
    pattern: Bytes,
    access: Access,
}

/// A set of rights. A user has one, and perhaps more in brackets, of which one must allow all of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    commands: HashSet<&'static str>,
    /// Whether all commands are there, so that nobody has to look.
    has_all_commands: bool,
    /// Whether the rules began with all commands, from which some were taken.
    begins_with_all: bool,
    /// First arguments with which commands are allowed that are not otherwise.
    first_arguments: BTreeMap<&'static str, Vec<Bytes>>,
    has_all_keys: bool,
    keys: Vec<KeyPattern>,
    has_all_channels: bool,
    channels: Vec<Bytes>,
}

impl Selector {
    /// Changes the rights as a rule says.
    pub(super) fn apply(&mut self, rule: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        if is("allkeys") || is("~*") {
            (self.has_all_keys, self.keys) = (true, Vec::new());
        } else if is("resetkeys") {
            (self.has_all_keys, self.keys) = (false, Vec::new());
        } else if is("allchannels") || is("&*") {
            (self.has_all_channels, self.channels) = (true, Vec::new());
        } else if is("resetchannels") {
            (self.has_all_channels, self.channels) = (false, Vec::new());
        } else if is("allcommands") || is("+@all") {
            self.set_all(true, catalog);
        } else if is("nocommands") || is("-@all") {
            self.set_all(false, catalog);
        } else {
            match rule {
                [b'~' | b'%', ..] => self.add_keys(rule)?,
                [b'&', channels @ ..] => self.add_channels(channels)?,
                [sign @ (b'+' | b'-'), b'@', category @ ..] => {
                    let category = category_of(category).ok_or(RuleError::UnknownName)?;
                    self.set_category(category, *sign == b'+', catalog);
                }
                [b'+', name @ ..] => self.allow(name, catalog)?,
                [b'-', name @ ..] => {
                    let command = catalog.find(name).ok_or(RuleError::UnknownName)?;
                    self.set(command, false, catalog);
                }
                _ => return Err(RuleError::Syntax),
            }
        }
        Ok(())
    }

    fn set_all(&mut self, are_allowed: bool, catalog: &Catalog) {
        let allowed = catalog.commands().iter().filter(|_| are_allowed);
        self.commands = allowed.map(|command| command.name).collect();
        (self.has_all_commands, self.begins_with_all) = (are_allowed, are_allowed);
        self.first_arguments.clear();
    }

    /// Allows all commands of a category, or none of them.
    pub(super) fn set_category(&mut self, category: usize, are_allowed: bool, catalog: &Catalog) {
        catalog.category(category).for_each(|command| self.set(command, are_allowed, catalog));
    }

    /// Allows a command with its subcommands, or takes the right away.
    pub(super) fn set(&mut self, command: &Listed, is_allowed: bool, catalog: &Catalog) {
        self.first_arguments.remove(command.name);
        for command in catalog.whole(command) {
            if is_allowed {
                self.commands.insert(command.name);
            } else {
                self.commands.remove(command.name);
                self.has_all_commands = false;
            }
        }
    }

    fn allow(&mut self, name: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        let find = |name| catalog.find(name).ok_or(RuleError::UnknownName);
        let Some(end) = name.iter().rposition(|byte| *byte == b'|') else {
            self.set(find(name)?, true, catalog);
            return Ok(());
        };
        let (command, word) = (find(&name[..end])?, &name[end + 1..]);
        if command.name.contains('|') {
            return Err(RuleError::OfSubcommand);
        }
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if command.has_subcommands() {
            self.set(find(name)?, true, catalog);
            return Ok(());
        }
        let words = self.first_arguments.entry(command.name).or_default();
        if !words.iter().any(|other| other.eq_ignore_ascii_case(word)) {
            words.push(Bytes::copy_from_slice(word));
        }
        Ok(())
    }

    /// `~pattern`, or `%R~pattern`, `%W~pattern` or `%RW~pattern`.
    fn add_keys(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.has_all_keys {
            return Err(RuleError::HasAllKeys);
        }
        let end = rule.iter().position(|byte| *byte == b'~').ok_or(RuleError::Syntax)?;
        let (letters, pattern) = (rule[..end].strip_prefix(b"%"), &rule[end + 1..]);
        let access = match letters {
            None => Access { reads: true, writes: true },
            Some(letters) => {
                let letters = letters.to_ascii_uppercase();
                let count = |letter: u8| letters.iter().filter(|other| **other == letter).count();
                let (reads, writes) = (count(b'R'), count(b'W'));
                if letters.is_empty() || reads > 1 || writes > 1 || reads + writes < letters.len() {
                    return Err(RuleError::Syntax);
                }
                Access { reads: reads > 0, writes: writes > 0 }
            }
        };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|other| other.pattern == pattern) {
            Some(KeyPattern { access: old, .. }) => {
                *old = Access { reads: old.reads || access.reads, writes: old.writes || access.writes };
            }
            None => self.keys.push(KeyPattern { pattern: Bytes::copy_from_slice(pattern), access }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.has_all_channels {
            return Err(RuleError::HasAllChannels);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|other| other == pattern) {
            self.channels.push(Bytes::copy_from_slice(pattern));
        }
        Ok(())
    }

    /// Whether it allows everything.
    pub(super) fn allows_all(&self) -> bool {
        self.has_all_commands && self.has_all_keys && self.has_all_channels
    }

    /// Whether it allows an attempt as a whole, or else what it does not.
    pub(super) fn check(&self, attempt: &Attempt<'_>) -> Result<(), Denial> {
        if !self.has_all_commands && !attempt.is_for_all && !self.runs(attempt) {
            return Err(Denial::Command);
        }
        let arguments = attempt.arguments;
        let key = attempt.keys.iter().find(|(at, access)| !self.allows_key(&arguments[*at], *access));
        if let Some((at, _)) = key {
            return Err(Denial::Key(*at));
        }
        let allows = |at: &usize| self.allows_channel(&arguments[*at], attempt.are_patterns);
        attempt.channels.clone().find(|at| !allows(at)).map_or(Ok(()), |at| Err(Denial::Channel(at)))
    }

    fn runs(&self, attempt: &Attempt<'_>) -> bool {
        let has_first_argument = || {
            let words = self.first_arguments.get(attempt.command)?;
            let first = attempt.arguments.get(1)?;
            Some(words.iter().any(|word| word.eq_ignore_ascii_case(first)))
        };
        self.commands.contains(attempt.command) || has_first_argument().unwrap_or(false)
    }

    fn allows_key(&self, key: &[u8], access: Access) -> bool {
        let allows = |allowed: Access| (allowed.reads || !access.reads) && (allowed.writes || !access.writes);
        self.has_all_keys || self.keys.iter().any(|keys| allows(keys.access) && glob::matches(&keys.pattern, key))
    }

    /// Whether it allows a channel, or to listen to a pattern: this one must be among the rules as it is.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let allows = |allowed: &Bytes| if is_pattern { allowed == channel } else { glob::matches(allowed, channel) };
        self.has_all_channels || self.channels.iter().any(allows)
    }

    /// The patterns of keys as rules.
    pub(crate) fn key_rules(&self) -> Vec<Bytes> {
        if self.has_all_keys {
            return vec!["~*".into()];
        }
        let rule = |keys: &KeyPattern| {
            let start: &[u8] = match keys.access {
                Access { reads: true, writes: true } => b"~",
                Access { reads: true, .. } => b"%R~",
                Access { .. } => b"%W~",
            };
            [start, &keys.pattern[..]].concat().into()
        };
        self.keys.iter().map(rule).collect()
    }

    /// The patterns of channels as rules.
    pub(crate) fn channel_rules(&self) -> Vec<Bytes> {
        if self.has_all_channels {
            return vec!["&*".into()];
        }
        self.channels.iter().map(|channel| [b"&", &channel[..]].concat().into()).collect()
    }

    /// All of it as rules.
    pub(super) fn rules(&self, catalog: &Catalog) -> Bytes {
        let mut rules = self.key_rules();
        if !self.has_all_channels {
            rules.push("resetchannels".into());
        }
        rules.extend(self.channel_rules());
        rules.push(self.command_rules(catalog).into());
        rules.join(&b' ').into()
    }

    /// The commands as rules: the categories that fit best, each in its turn, and then single commands. It is Redis's way, so
    /// that the same rules come out.
    pub(crate) fn command_rules(&self, catalog: &Catalog) -> String {
        let adds = !self.begins_with_all;
        let sign = if adds { '+' } else { '-' };
        let mut rules = String::from(if adds { "-@all" } else { "+@all" });
        let (mut made, mut left) = (Selector::default(), Selector::default());
        made.set_all(self.begins_with_all, catalog);
        left.commands.clone_from(&self.commands);
        let mut is_used = [false; CATEGORIES.len()];
        while let Some(best) = left.best_category(&is_used, adds, catalog) {
            is_used[best] = true;
            made.set_category(best, adds, catalog);
            left.set_category(best, !adds, catalog);
            rules.push_str(&format!(" {sign}{}", CATEGORIES[best]));
        }
        for command in catalog.commands() {
            let (name, is_allowed) = (command.name, self.commands.contains(command.name));
            if is_allowed != made.commands.contains(name) {
                rules.push_str(&format!(" {}{name}", if is_allowed { '+' } else { '-' }));
                made.set(command, is_allowed, catalog);
            }
            for word in self.first_arguments.get(name).into_iter().flatten().filter(|_| !is_allowed) {
                rules.push_str(&format!(" +{name}|{}", String::from_utf8_lossy(word)));
            }
        }
        rules
    }

    /// The category of which most commands are to be named, and fewest others.
    fn best_category(&self, is_used: &[bool], adds: bool, catalog: &Catalog) -> Option<usize> {
        let (mut best, mut least_different, mut most_same) = (None, usize::MAX, 0);
        for category in (0..CATEGORIES.len()).filter(|category| !is_used[*category]) {
            let is_same = |command: &&Listed| self.commands.contains(command.name) == adds;
            let same = catalog.category(category).filter(is_same).count();
            let different = catalog.category(category).count() - same;
            let is_better = different < least_different || different == least_different && same > most_same;
            if same > different && is_better {
                (best, least_different, most_same) = (Some(category), different, same);
            }
        }
        best
    }
}

/// Whether there is something in a name or pattern that would break the lines of a file.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0))
}
