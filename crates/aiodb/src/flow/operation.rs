//! Writes as the log takes them: operations, values as their records have them, large ones in chunks.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::format::batch::Append;
use crate::format::place::Counting;
use crate::format::record::{Chunk, Form, Kind, encode_chunks};
use crate::index::codec::MAX_WHOLE_KEY_BYTES;
use crate::index::ordered::OrderedIndex;
use crate::io::Device;
use crate::store::catalog::Generation;
use crate::store::commit::Operation;
use crate::store::read_path::ReadPath;
use crate::store::staging::Staged;
use crate::store::write_path::WritePath;
use crate::{Durability, IndexKind, Result, Sequence};

impl Operation<'_> {
    /// Whether it is published in this ordered index.
    pub(crate) fn is_in<D: Device>(&self, ordered: &OrderedIndex<D>) -> bool {
        let is_of_kind = |generation: &Arc<Generation>| generation.kind() == ordered.kind();
        self.append.kind.is_indexed() && self.generation.as_ref().is_some_and(is_of_kind)
    }

    /// Whether it is of a `hash` table.
    pub(crate) fn is_of_hash(&self) -> bool {
        self.generation.as_ref().is_some_and(|generation| generation.kind() == IndexKind::Hash)
    }
}

/// A value as its record has it.
pub(crate) struct Stored<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) form: Form,
}

impl Stored<'static> {
    /// No value.
    pub(crate) fn empty() -> Stored<'static> {
        Stored::whole(Vec::new())
    }

    /// A list of chunks.
    pub(crate) fn chunked(list: Vec<u8>) -> Stored<'static> {
        Stored { bytes: Cow::Owned(list), form: Form { chunked: true, ..Form::default() } }
    }

    /// Bytes as they are.
    pub(crate) fn whole(bytes: Vec<u8>) -> Stored<'static> {
        Stored { bytes: Cow::Owned(bytes), form: Form::default() }
    }
}

impl<D: Device> WritePath<D> {
    /// Puts one value, large ones in chunks that come before the record that names them.
    pub(crate) fn put(
        &self,
        generation: Arc<Generation>,
        key: &[u8],
        value: &[u8],
        durability: Durability,
        expires_ms: Option<NonZeroU64>,
    ) -> Result<Sequence> {
        let _staging = (value.len() > self.whole_value_bytes()).then(|| self.begin_staging());
        let stored = self.stored(&generation, key, value)?;
        let operation = self.put_operation(generation, key, &stored, expires_ms);
        self.write(&[operation], durability)
    }

    /// A value as its record has it: compressed if the table says so and it is worth it, a list of chunks if it is large.
    /// The caller has begun staging if it is.
    pub(crate) fn stored<'a>(&self, generation: &Arc<Generation>, key: &[u8], value: &'a [u8]) -> Result<Stored<'a>> {
        let mut form = Form::default();
        if value.len() > self.whole_value_bytes() {
            form.chunked = true;
            return Ok(Stored { bytes: Cow::Owned(self.write_chunks(generation, key, value)?), form });
        }
        let compressed = generation.settings.compression.compress(value);
        form.compressed = compressed.is_some();
        Ok(Stored { bytes: compressed.map_or(Cow::Borrowed(value), Cow::Owned), form })
    }

    pub(crate) fn put_operation<'a>(
        &self,
        generation: Arc<Generation>,
        key: &'a [u8],
        stored: &'a Stored<'_>,
        expires_ms: Option<NonZeroU64>,
    ) -> Operation<'a> {
        let mut append = Append::new(Kind::Put, generation.id, key, &stored.bytes);
        append.form = Form { expires_ms, ..stored.form };
        append.separate = self.separates(&generation, &append);
        Operation { hash: self.hash(key), generation: Some(generation), append, over: None }
    }

    pub(crate) fn merge_operation<'a>(
        &self,
        generation: Arc<Generation>,
        key: &'a [u8],
        operand: &'a Stored<'_>,
    ) -> Operation<'a> {
        let mut operation = self.put_operation(generation, key, operand, None);
        operation.append.kind = Kind::Merge;
        operation
    }

    pub(crate) fn delete_operation<'a>(&self, generation: Arc<Generation>, key: &'a [u8]) -> Operation<'a> {
        let append = Append::new(Kind::Delete, generation.id, key, &[]);
        Operation { hash: self.hash(key), generation: Some(generation), append, over: None }
    }

    /// `end` is as [`encode_range_end`] makes it.
    pub(crate) fn range_operation<'a>(
        &self,
        generation: Arc<Generation>,
        start: &'a [u8],
        end: &'a [u8],
    ) -> Operation<'a> {
        let append = Append::new(Kind::RangeTombstone, generation.id, start, end);
        Operation { hash: 0, generation: Some(generation), append, over: None }
    }

    /// Appends a large value's chunks; returns the list that names them. The caller has begun staging.
    pub(crate) fn write_chunks(&self, generation: &Arc<Generation>, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let parts = value.chunks(self.whole_value_bytes());
        let chunks = parts.map(|part| self.write_chunk(generation, key, part)).collect::<Result<Vec<_>>>()?;
        Ok(encode_chunks(value.len() as u64, &chunks))
    }

    /// Appends one part of a large value.
    pub(crate) fn write_chunk(&self, generation: &Arc<Generation>, key: &[u8], part: &[u8]) -> Result<Chunk> {
        let mut append = Append::new(Kind::Chunk, generation.id, key, part);
        append.separate = true;
        let operation = Operation { generation: Some(Arc::clone(generation)), append, hash: 0, over: None };
        // The record that names the chunks is durable only if everything before it is.
        let placed = self.write_placed(&[operation], Durability::None)?;
        let checksum = placed[0].separate.expect("a chunk is separate");
        Ok(Chunk { location: placed[0].location, checksum })
    }

    /// Protects chunks that no record names yet from reclaim.
    pub(crate) fn begin_staging(&self) -> Staged<'_> {
        self.staging.begin(|| self.commit.log_end().life)
    }

    /// [`WritePath::begin_staging`] for an owner that cannot borrow: to be ended by `Staging::end`.
    pub(crate) fn stage(&self) -> u64 {
        self.staging.begin_unowned(|| self.commit.log_end().life)
    }
}

impl<D: Device> ReadPath<D> {
    /// Whether the value of a record that is to be appended lies on blocks of its own, as far as there is a choice: in `lsm` tables where
    /// it takes less room so. A key that is too long for the index stays with its value, where a scan finds it, and a value that the
    /// index is to have stays with its key.
    pub(crate) fn separates(&self, generation: &Generation, append: &Append<'_>) -> bool {
        let counting = match generation.kind() {
            IndexKind::Hash => return false,
            IndexKind::Lmdb => Counting::ByLength,
            IndexKind::Lsm => self.catalog.counting(),
        };
        let is_inline = !append.form.chunked && append.value.len() <= generation.settings.inline_bytes;
        append.key.len() <= MAX_WHOLE_KEY_BYTES && !is_inline && counting.is_denser_separate(append)
    }

    /// Whether the value of a record that is to be moved lies on blocks of its own, which it did before or not.
    pub(crate) fn stays_or_becomes_separate(&self, generation: &Generation, was: bool, moved: &Append<'_>) -> bool {
        was || self.catalog.counting().may_become_separate(moved) && self.separates(generation, moved)
    }
}
