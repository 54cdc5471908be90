//! The memory of a shard: entries one behind the other in blocks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use super::Place;

/// Entries begin at multiples of this, and addresses count it.
const GRANULE_BYTES: usize = 16;

/// The start of an entry. The key follows; behind it, at the next granule, the value.
#[repr(C)]
struct Header {
    life: u64,
    segment: u32,
    offset: u32,
    table: u32,
    key_length: u32,
    value_length: u32,
    /// Whether the entry was asked for since it came to its place. Relaxed: it publishes nothing, and only steers eviction.
    asked_for: AtomicBool,
}

const HEADER_BYTES: usize = size_of::<Header>();
const _: () = assert!(HEADER_BYTES.is_multiple_of(GRANULE_BYTES) && align_of::<Header>() <= GRANULE_BYTES);

/// Bytes of a cache line of most processors.
const LINE_BYTES: usize = 64;

/// More than this would push each other out when many gets are in flight.
const PREFETCHED_LINES: usize = 64;

/// Of what pages the system makes the memory, where it has a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Faster where much of the memory is in use.
    Large,
    /// Nothing is taken in which no entry lies, also where the system makes large pages of all memory unasked.
    Small,
}

/// Bytes of a page of the system's memory, which it gives and takes as a whole.
pub(super) fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: the call reads no memory of this process.
    *PAGE_BYTES
        .get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("a page has a size"))
}

/// Where an entry begins, in granules from the start of the shard's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(u32);

/// The blocks of a shard, by number. Each is filled from its start and emptied as a whole.
pub(super) struct Blocks {
    blocks: Vec<Filling>,
    block_bytes: usize,
    pages: Pages,
}

struct Filling {
    block: Arc<Block>,
    filled: usize,
    /// Of these, bytes of entries that were forgotten.
    forgotten: usize,
    /// Bytes that were filled since the memory was taken from the system, or given back to it: so much is taken.
    touched: usize,
    /// Whether the memory was given back, and is of small pages since.
    given_back: bool,
}

/// A part of a shard's memory. A thread that has a clone of its `Arc` may read the entries in it.
struct Block {
    memory: Arc<MmapRaw>,
    start: usize,
}

/// A key and its value. Clones share the bytes, which stay as long as a clone is left.
#[derive(Clone)]
pub(crate) struct Cached {
    block: Arc<Block>,
    offset: usize,
}

/// An entry in place.
struct Entry<'a> {
    header: &'a Header,
    key: &'a [u8],
    value: &'a [u8],
}

/// Bytes of an entry in its block.
pub(super) fn entry_bytes(key_length: usize, value_length: usize) -> usize {
    value_offset(key_length) + value_length.next_multiple_of(GRANULE_BYTES)
}

fn value_offset(key_length: usize) -> usize {
    HEADER_BYTES + key_length.next_multiple_of(GRANULE_BYTES)
}

impl Blocks {
    /// No blocks yet. They will have `block_bytes`, whole pages.
    pub(super) fn none(block_bytes: usize, pages: Pages) -> Blocks {
        assert!(block_bytes.is_multiple_of(page_bytes()), "no page has entries of two blocks");
        Blocks { blocks: Vec::new(), block_bytes, pages }
    }

    /// Adds empty blocks; all together have less than 64 GiB. Memory is taken from the system as they are filled.
    pub(super) fn add(&mut self, count: usize) -> io::Result<()> {
        let all = (self.count() + count) * self.block_bytes;
        assert!(all / GRANULE_BYTES < u32::MAX as usize, "addresses have 32 bits");
        let mapping = MmapOptions::new().len(count * self.block_bytes).map_anon()?;
        // Where it is refused, the system's own choice slows the cache down or takes more memory than is counted, nothing else.
        let _ = mapping.advise(match self.pages {
            Pages::Large => Advice::HugePage,
            Pages::Small => Advice::NoHugePage,
        });
        let memory = Arc::new(MmapRaw::from(mapping));
        self.blocks.extend((0..count).map(|number| {
            let block = Arc::new(Block { memory: Arc::clone(&memory), start: number * self.block_bytes });
            Filling { block, filled: 0, forgotten: 0, touched: 0, given_back: false }
        }));
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Of what pages their memory is.
    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// Bytes of all entries.
    pub(super) fn filled_bytes(&self) -> usize {
        self.blocks.iter().map(|filling| filling.filled).sum()
    }

    /// Bytes that are taken from the system.
    pub(super) fn touched_bytes(&self) -> usize {
        self.blocks.iter().map(|filling| filling.touched).sum()
    }

    /// Gives the memory of an empty block back to the system, which takes it from there again when the block is filled.
    pub(super) fn give_back(&mut self, block: u32) {
        let block_bytes = self.block_bytes;
        let filling = &mut self.blocks[block as usize];
        if filling.touched == 0 {
            return;
        }
        let Some(Block { memory, start }) = Arc::get_mut(&mut filling.block) else { return };
        assert_eq!(filling.filled, 0, "memory with entries is not given back");
        // SAFETY: the range is that of this block, whole pages within the mapping. It has no entry, and nobody else has the block, so no
        // reference to its bytes is left; whoever fills it writes each byte before it is read.
        let given_back = unsafe { memory.unchecked_advise_range(UncheckedAdvice::DontNeed, *start, block_bytes) };
        if given_back.is_err() {
            return;
        }
        filling.touched = 0;
        if self.pages == Pages::Large {
            // Else the system makes one page of the block and those beside it again, and takes the memory for that. Where it has no large
            // pages, or too many ranges of memory have advice of their own already, nothing else changes.
            filling.given_back = memory.advise_range(Advice::NoHugePage, *start, block_bytes).is_ok();
        }
    }

    /// Makes room for new entries; false, and nothing has changed, if a thread still has an entry of the block.
    pub(super) fn empty(&mut self, block: u32) -> bool {
        let filling = &mut self.blocks[block as usize];
        // Only the caller can get at the block from here on, and every other thread has let go of it before.
        let alone = Arc::get_mut(&mut filling.block).is_some();
        if alone {
            (filling.filled, filling.forgotten) = (0, 0);
        }
        alone
    }

    /// Notes that an entry will not be asked for again.
    pub(super) fn forget(&mut self, address: Address) {
        let (block, offset) = self.split(address);
        let filling = &mut self.blocks[block];
        filling.forgotten += filling.block.entry(offset).bytes();
    }

    /// Bytes of a block's forgotten entries.
    pub(super) fn forgotten_bytes(&self, block: u32) -> usize {
        self.blocks[block as usize].forgotten
    }

    /// Whether these are half of its bytes or more.
    pub(super) fn is_mostly_forgotten(&self, block: u32) -> bool {
        let Filling { filled, forgotten, .. } = self.blocks[block as usize];
        forgotten > 0 && 2 * forgotten >= filled
    }

    /// Appends an entry; `None` if the block has no room for it.
    pub(super) fn append(&mut self, block: u32, place: Place, table: u32, key: &[u8], value: &[u8]) -> Option<Address> {
        let bytes = entry_bytes(key.len(), value.len());
        let filling = &mut self.blocks[block as usize];
        if bytes > self.block_bytes - filling.filled {
            return None;
        }
        if std::mem::take(&mut filling.given_back) {
            let Block { memory, start } = &*filling.block;
            let _ = memory.advise_range(Advice::HugePage, *start, self.block_bytes);
        }
        let offset = filling.filled;
        let header = Header {
            life: place.life,
            segment: place.segment,
            offset: place.offset,
            table,
            key_length: key.len() as u32,
            value_length: value.len() as u32,
            asked_for: AtomicBool::new(false),
        };
        // SAFETY: the bytes from `filled` to the block's end lie within the mapping and in no entry, so no thread reads
        // them; no other thread writes, since this borrows all blocks. They begin at a granule, which aligns the header.
        unsafe {
            let start = filling.block.at(offset);
            start.cast::<Header>().write(header);
            start.add(HEADER_BYTES).copy_from_nonoverlapping(key.as_ptr(), key.len());
            start.add(value_offset(key.len())).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        filling.filled += bytes;
        filling.touched = filling.touched.max(filling.filled);
        Some(self.address(block, offset))
    }

    /// Appends a copy of an entry to another block; `None` if that has no room for it.
    pub(super) fn copy(&mut self, from: Address, to: u32) -> Option<Address> {
        let entry = self.cached(from);
        self.append(to, entry.place(), entry.table(), entry.key(), entry.value())
    }

    /// The entry at an address that came from these blocks and has not been emptied since.
    pub(super) fn cached(&self, address: Address) -> Cached {
        let (block, offset) = self.split(address);
        Cached { block: Arc::clone(&self.blocks[block].block), offset }
    }

    /// Like [`Blocks::cached`]: where the entry's bytes come from.
    pub(super) fn place(&self, address: Address) -> Place {
        let (block, offset) = self.split(address);
        self.blocks[block].block.entry(offset).header.place()
    }

    /// Like [`Blocks::cached`]: asks the processor for the value's bytes.
    pub(super) fn prefetch(&self, address: Address) {
        let (block, offset) = self.split(address);
        self.blocks[block].block.entry(offset).prefetch();
    }

    /// The entries of a block, oldest first, the forgotten ones too.
    pub(super) fn entries(&self, block: u32) -> Vec<Address> {
        let Filling { block: memory, filled, .. } = &self.blocks[block as usize];
        let (mut found, mut offset) = (Vec::new(), 0);
        while offset < *filled {
            found.push(self.address(block, offset));
            let entry = memory.entry(offset);
            offset += entry.bytes();
        }
        found
    }

    fn address(&self, block: u32, offset: usize) -> Address {
        Address(((block as usize * self.block_bytes + offset) / GRANULE_BYTES) as u32)
    }

    fn split(&self, address: Address) -> (usize, usize) {
        let at = address.0 as usize * GRANULE_BYTES;
        let (block, offset) = (at / self.block_bytes, at % self.block_bytes);
        assert!(offset < self.blocks[block].filled, "an address is that of an entry");
        (block, offset)
    }
}

impl Block {
    /// The address of a byte of the block.
    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: blocks lie within the mapping, and offsets within their block.
        unsafe { self.memory.as_mut_ptr().add(self.start + offset) }
    }

    /// The entry that was appended at this offset.
    fn entry(&self, offset: usize) -> Entry<'_> {
        let start = self.at(offset);
        // SAFETY: `Blocks::append` wrote a header, a key and a value of the header's lengths here before it gave the
        // offset away. No thread writes here again (but for the atomic flag) until `Blocks::empty` has found that only
        // the blocks have this block, so not before the end of this borrow.
        unsafe {
            let header = &*start.cast::<Header>();
            let key = std::slice::from_raw_parts(start.add(HEADER_BYTES), header.key_length as usize);
            let value = start.add(value_offset(key.len()));
            Entry { header, key, value: std::slice::from_raw_parts(value, header.value_length as usize) }
        }
    }
}

impl Entry<'_> {
    fn bytes(&self) -> usize {
        entry_bytes(self.key.len(), self.value.len())
    }

    fn prefetch(&self) {
        for line in self.value.chunks(LINE_BYTES).take(PREFETCHED_LINES) {
            prefetch(line);
        }
    }
}

impl Header {
    fn place(&self) -> Place {
        Place { segment: self.segment, offset: self.offset, life: self.life }
    }
}

impl Cached {
    /// Whether it is of this key in this table.
    pub(crate) fn is_of(&self, table: u32, key: &[u8]) -> bool {
        self.table() == table && self.key() == key
    }

    /// The value.
    pub(crate) fn value(&self) -> &[u8] {
        self.block.entry(self.offset).value
    }

    /// Asks the processor for the value's bytes, for a caller that will want them in a moment.
    pub(crate) fn prefetch(&self) {
        self.block.entry(self.offset).prefetch();
    }

    pub(super) fn key(&self) -> &[u8] {
        self.block.entry(self.offset).key
    }

    pub(super) fn table(&self) -> u32 {
        self.block.entry(self.offset).header.table
    }

    pub(super) fn place(&self) -> Place {
        self.block.entry(self.offset).header.place()
    }

    /// Notes that the entry was asked for.
    pub(super) fn ask_for(&self) {
        let asked_for = &self.block.entry(self.offset).header.asked_for;
        // Mostly it is noted already, and reading does not take the line from other processors.
        if !asked_for.load(Ordering::Relaxed) {
            asked_for.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn was_asked_for(&self) -> bool {
        self.block.entry(self.offset).header.asked_for.load(Ordering::Relaxed)
    }
}

/// Asks for the cache line that bytes begin in, where there is an instruction for that.
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and it changes nothing that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
