//! The commands that rules may name, and the categories that they are in.

use std::collections::HashMap;

/// Redis's categories in its order. Some have no commands here.
pub(crate) const CATEGORIES: [&str; 21] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
];

/// A command or a subcommand.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Of a subcommand with its container's name before a `|`.
    pub(crate) name: &'static str,
    /// Whether it is in each of [`CATEGORIES`].
    is_in: [bool; CATEGORIES.len()],
    /// Those behind it that are its subcommands.
    subcommands: usize,
}

/// All commands, each before its subcommands.
pub(crate) struct Catalog {
    commands: Vec<Listed>,
    by_name: HashMap<&'static str, usize>,
}

impl Catalog {
    /// Takes names, each before its subcommands, with whether they are in each of [`CATEGORIES`].
    pub(crate) fn new(every: impl Iterator<Item = (&'static str, [bool; CATEGORIES.len()])>) -> Catalog {
        let mut commands: Vec<Listed> = Vec::new();
        let mut container = 0;
        for (name, is_in) in every {
            if name.contains('|') {
                commands[container].subcommands += 1;
            } else {
                container = commands.len();
            }
            commands.push(Listed { name, is_in, subcommands: 0 });
        }
        let by_name = commands.iter().enumerate().map(|(at, command)| (command.name, at)).collect();
        Catalog { commands, by_name }
    }

    /// All commands, each before its subcommands.
    pub(crate) fn commands(&self) -> &[Listed] {
        &self.commands
    }

    /// Those of a category, given by its place in [`CATEGORIES`].
    pub(crate) fn category(&self, category: usize) -> impl Iterator<Item = &Listed> {
        self.commands.iter().filter(move |command| command.is_in[category])
    }

    /// The command of a name in any letters.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Listed> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.by_name.get(&*name).map(|at| &self.commands[*at])
    }

    /// A command and its subcommands.
    pub(crate) fn whole(&self, command: &Listed) -> &[Listed] {
        let at = self.by_name[command.name];
        &self.commands[at..=at + command.subcommands]
    }
}

impl Listed {
    pub(crate) fn has_subcommands(&self) -> bool {
        self.subcommands > 0
    }
}

/// The place in [`CATEGORIES`] of a category that is named without `@`, in any letters.
pub(crate) fn category_of(name: &[u8]) -> Option<usize> {
    CATEGORIES.iter().position(|category| category.as_bytes()[1..].eq_ignore_ascii_case(name))
}
