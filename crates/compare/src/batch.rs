//! Records that an engine is given in one call.

/// Keys and values, one behind the other in memory that is kept from one use to the next.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where each record's key and value end.
    ends: Vec<[usize; 2]>,
}

impl Batch {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a record.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push([key_end, self.bytes.len()]);
    }

    /// Records in the batch.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The records, in the order in which they were added.
    pub fn records(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|ends| ends[1]));
        starts.zip(&self.ends).map(|(start, &[key_end, end])| (&self.bytes[start..key_end], &self.bytes[key_end..end]))
    }
}

#[cfg(test)]
mod tests;
