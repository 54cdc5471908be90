//! What commands have in common.

use crate::command::{Ahead, ChannelNames, Command, Documentation, Keys, NO_KEYS, Reads, Run};

/// What the commands of a family have in common; each is made from it.
#[derive(Clone, Copy)]
pub(super) struct Family {
    group: &'static str,
    categories: &'static str,
    flags: &'static str,
    keys: Keys,
    channels: ChannelNames,
    members: Keys,
    ahead: Option<Ahead>,
    reads: Reads,
    complexity: &'static str,
}

impl Family {
    /// Commands without flags or keys, in constant time. `group` is what COMMAND DOCS names, `categories` are those of Redis's ACL.
    pub(super) const fn new(group: &'static str, categories: &'static str) -> Family {
        Family {
            group,
            categories,
            flags: "",
            keys: NO_KEYS,
            channels: ChannelNames::None,
            members: NO_KEYS,
            ahead: None,
            reads: Reads::Never,
            complexity: "O(1)",
        }
    }

    pub(super) const fn categories(self, categories: &'static str) -> Family {
        Family { categories, ..self }
    }

    pub(super) const fn flags(self, flags: &'static str) -> Family {
        Family { flags, ..self }
    }

    /// With keys whose values are read before the command runs.
    pub(super) const fn keys(self, keys: Keys) -> Family {
        Family { keys, reads: Reads::Always, ..self }
    }

    /// With arguments that are channels.
    pub(super) const fn channels(self, channels: ChannelNames) -> Family {
        Family { channels, ..self }
    }

    /// With arguments that name elements of the collections of its keys: from `first` to `last`, each `step` after the other.
    pub(super) const fn members(self, first: i64, last: i64, step: i64) -> Family {
        Family { members: Keys { first, last, step, ..NO_KEYS }, ..self }
    }

    /// With elements of its first key's collection that no argument names, which are read before the command runs.
    pub(super) const fn ahead(self, ahead: Ahead) -> Family {
        Family { ahead: Some(ahead), ..self }
    }

    pub(super) const fn reads(self, reads: Reads) -> Family {
        Family { reads, ..self }
    }

    pub(super) const fn complexity(self, complexity: &'static str) -> Family {
        Family { complexity, ..self }
    }

    /// A command of this family; the arguments are as in [`Command`] and [`Documentation`].
    pub(super) const fn command(
        self,
        name: &'static str,
        arity: i64,
        run: Run,
        since: &'static str,
        summary: &'static str,
    ) -> Command {
        let Family { group, categories, flags, keys, channels, members, ahead, reads, complexity } = self;
        let documentation = Documentation { summary, since, group, complexity };
        let subcommands = &[];
        Command {
            name,
            arity,
            flags,
            is_write: starts_with_write(flags),
            categories,
            keys,
            channels,
            members,
            ahead,
            reads,
            run,
            documentation,
            subcommands,
        }
    }

    /// A command that only has subcommands.
    pub(super) const fn container(
        self,
        name: &'static str,
        since: &'static str,
        summary: &'static str,
        subcommands: &'static [Command],
    ) -> Command {
        Command { subcommands, ..self.command(name, -2, Run::Container, since, summary) }
    }
}

/// Whether these are the flags of a command that may change its keys: `write` is the first of them.
const fn starts_with_write(flags: &str) -> bool {
    matches!(flags.as_bytes(), [b'w', b'r', b'i', b't', b'e'] | [b'w', b'r', b'i', b't', b'e', b' ', ..])
}
