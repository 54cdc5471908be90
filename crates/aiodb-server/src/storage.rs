//! What memory keeps of the databases: their storage modes, as settings say them, and the shares that are there.

use aiodb::{StorageMode, TableModes, TableStats};

use crate::locks::Database;

/// What a mode is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Keys,
    Values,
}

impl Side {
    fn of(self, modes: TableModes) -> StorageMode {
        match self {
            Side::Keys => modes.keys,
            Side::Values => modes.values,
        }
    }

    fn set(self, modes: &mut TableModes, mode: StorageMode) {
        match self {
            Side::Keys => modes.keys = mode,
            Side::Values => modes.values = mode,
        }
    }
}

/// What a setting wants: a mode for all databases, others for single ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    side: Side,
    /// `None` are all databases. What comes later counts.
    modes: Vec<(Option<Database>, StorageMode)>,
}

/// What may be given.
const ALLOWED: &str = "argument must be auto, memory or disk, with the number of a database before a colon for that one alone: 'auto 3:disk'";

impl Wish {
    /// Reads what a setting says where there are so many databases; an error says what is allowed.
    pub(crate) fn parse(side: Side, text: &str, databases: u16) -> Result<Wish, String> {
        let read = |word: &str| {
            let (number, name) = word.split_once(':').map_or((None, word), |(number, name)| (Some(number), name));
            let mode = StorageMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name));
            let mode = mode.ok_or_else(|| ALLOWED.to_string())?;
            let Some(number) = number else { return Ok((None, mode)) };
            let database = number.parse().ok().filter(|number| *number < databases);
            let database = database.ok_or_else(|| format!("there is no database '{number}', of {databases}"))?;
            Ok((Some(database), mode))
        };
        let modes: Vec<_> = text.split_ascii_whitespace().map(read).collect::<Result<_, String>>()?;
        if modes.is_empty() { Err(ALLOWED.into()) } else { Ok(Wish { side, modes }) }
    }

    /// Changes the modes of the databases, in their order, to what is wanted.
    pub(crate) fn apply(&self, databases: &mut [TableModes]) {
        for (database, mode) in &self.modes {
            match database {
                None => databases.iter_mut().for_each(|modes| self.side.set(modes, *mode)),
                Some(database) => self.side.set(&mut databases[usize::from(*database)], *mode),
            }
        }
    }
}

/// The modes of databases as a setting would say them: that of the first one for all, and those that have another.
pub(crate) fn shown(side: Side, databases: &[TableModes]) -> String {
    let mut modes = databases.iter().map(|modes| side.of(*modes)).enumerate();
    let Some((_, first)) = modes.next() else { return String::new() };
    let others = modes.filter(|(_, mode)| *mode != first);
    others.fold(first.name().to_string(), |text, (number, mode)| text + &format!(" {number}:{}", mode.name()))
}

/// The shares of tables that are in the engine's memory, from 0 to 1, estimates; `None` where nothing is known, or there are no keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) keys: Option<f64>,
    /// Those in the server's own cache are not among them.
    pub(crate) values: Option<f64>,
}

impl Shares {
    /// Of some tables together.
    pub(crate) fn of<'a>(tables: impl Iterator<Item = &'a TableStats> + Clone) -> Shares {
        let mean = |share: fn(&TableStats) -> Option<f64>| {
            let known = tables.clone().filter(|table| table.keys > 0);
            let known = known.filter_map(|table| Some((share(table)?, table.keys as f64)));
            let (shares, keys) =
                known.fold((0.0, 0.0), |(shares, all), (share, keys)| (shares + share * keys, all + keys));
            (keys > 0.0).then(|| shares / keys)
        };
        Shares { keys: mean(TableStats::keys_in_memory), values: mean(TableStats::values_in_memory) }
    }
}

#[cfg(test)]
mod tests;
