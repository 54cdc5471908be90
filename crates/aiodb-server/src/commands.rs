//! All commands. Each stands once, in the file of its family, with all that is to be known of it.

mod access;
mod clients;
mod configuration;
mod connection;
mod databases;
mod expire;
mod family;
mod hashes;
mod info;
mod introspection;
mod keys;
mod list_search;
mod list_waits;
mod lists;
mod numbers;
mod objects;
mod operating;
mod pop_of;
mod publishing;
mod random;
mod scanning;
mod scripting;
mod set_algebra;
mod sets;
mod slow;
mod sorted_algebra;
mod sorted_ranges;
mod sorted_sets;
mod sorted_waits;
mod strings;
mod transactions;
mod waiting;

use crate::command::Table;

/// The table of all commands.
pub(crate) fn table() -> Table {
    Table::new(&[
        connection::COMMANDS,
        access::COMMANDS,
        clients::COMMANDS,
        introspection::COMMANDS,
        info::COMMANDS,
        strings::COMMANDS,
        numbers::COMMANDS,
        hashes::COMMANDS,
        sets::COMMANDS,
        set_algebra::COMMANDS,
        lists::COMMANDS,
        list_search::COMMANDS,
        list_waits::COMMANDS,
        sorted_sets::COMMANDS,
        sorted_ranges::COMMANDS,
        sorted_algebra::COMMANDS,
        sorted_waits::COMMANDS,
        keys::COMMANDS,
        expire::COMMANDS,
        objects::COMMANDS,
        databases::COMMANDS,
        transactions::COMMANDS,
        publishing::COMMANDS,
        scripting::COMMANDS,
        configuration::COMMANDS,
        slow::COMMANDS,
        operating::COMMANDS,
    ])
}

#[cfg(test)]
mod tests;
