//! Which columns of TSV and CSV are the key and the value.

use crate::load::csv::CsvRecords;

/// Indexes of columns, from 0.
pub struct Columns {
    key: usize,
    /// Without one: all after the key in TSV, the other of two columns in CSV.
    value: Option<usize>,
}

impl Columns {
    /// Columns given by number, from 1. Where a header is to come, names stand in their place; `named` replaces them.
    pub fn numbered(key: &str, value: Option<&str>) -> Columns {
        let index = |number: &str| number.parse::<usize>().unwrap_or(1).saturating_sub(1);
        Columns { key: index(key), value: value.map(index) }
    }

    /// Columns given by a name in the header or, where no column has that name, by number.
    pub fn named(header: &[&[u8]], key: &str, value: Option<&str>) -> Result<Columns, String> {
        let index = |column: &str| {
            let named = header.iter().position(|name| *name == column.as_bytes());
            let numbered = || column.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < header.len());
            named.or_else(numbered).ok_or_else(|| {
                let names: Vec<_> = header.iter().map(|name| String::from_utf8_lossy(name)).collect();
                format!("the header has no column `{column}`; it has {}", names.join(", "))
            })
        };
        Ok(Columns { key: index(key)?, value: value.map(index).transpose()? })
    }

    /// Key and value in a line of TSV.
    pub fn of_line<'a>(&self, line: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), String> {
        let number = || line.split(|&byte| byte == b'\t').count();
        let key = from_column(line, self.key).map(first_column);
        let value = match self.value {
            Some(index) => from_column(line, index).map(first_column),
            None => from_column(line, self.key + 1),
        };
        let key = key.ok_or_else(|| missing("key", self.key, number()))?;
        Ok((key, value.ok_or_else(|| missing("value", self.value.unwrap_or(self.key + 1), number()))?))
    }

    /// Key and value in a CSV record.
    pub fn of_record<'a>(&self, record: &'a CsvRecords) -> Result<(&'a [u8], &'a [u8]), String> {
        let number = record.columns();
        let key = record.column(self.key).ok_or_else(|| missing("key", self.key, number))?;
        let value = match self.value {
            Some(index) => index,
            None if number == 2 => 1 - self.key,
            None if number == 1 => 1,
            None => return Err(format!("{number} columns: say with --value which one is the value")),
        };
        Ok((key, record.column(value).ok_or_else(|| missing("value", value, number))?))
    }
}

fn missing(what: &str, index: usize, number: usize) -> String {
    let columns = if number == 1 { "column" } else { "columns" };
    format!("{number} {columns}, but the {what} is in column {}", index + 1)
}

/// A line of TSV from the column with this index to its end.
fn from_column(line: &[u8], index: usize) -> Option<&[u8]> {
    (0..index).try_fold(line, |rest, _| {
        let tab = rest.iter().position(|&byte| byte == b'\t')?;
        Some(&rest[tab + 1..])
    })
}

fn first_column(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b'\t').next().unwrap_or(line)
}
