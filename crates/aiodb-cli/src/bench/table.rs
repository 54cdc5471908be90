//! Tables of figures, for the terminal and for the report.

/// A table of text cells; the first row of the terminal's form is the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[&'static str]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(row);
    }

    /// Columns padded to equal width: numbers to the right, words to the left.
    pub(crate) fn to_terminal(&self) -> String {
        let header: Vec<String> = self.columns.iter().map(|column| (*column).to_owned()).collect();
        let width = |index: usize| {
            std::iter::once(&header).chain(&self.rows).map(|row| row[index].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let cells = row.iter().enumerate().map(|(index, cell)| match self.is_numeric(index) {
                true => format!("{cell:>width$}", width = widths[index]),
                false => format!("{cell:<width$}", width = widths[index]),
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// Whether a column's cells begin with a digit or a sign or say that there is no value.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        let numeric =
            |cell: &str| cell == NONE || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
        self.rows.iter().all(|row| numeric(&row[column]))
    }
}

/// A cell without a value.
pub(crate) const NONE: &str = "–";

/// A rate or count in whole numbers with thousands separated.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A value with `digits` after the point, or the sign for none.
pub(crate) fn decimal(value: impl Into<Option<f64>>, digits: usize) -> String {
    value.into().map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// A size in the largest unit that keeps it above one.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if scaled.fract() == 0.0 { format!("{scaled:.0} {}", UNITS[unit]) } else { format!("{scaled:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests;
