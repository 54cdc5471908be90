//! Whether a file of LMDB's that is shorter than LMDB takes it to be lacks any page in use.
//!
//! Pages at the file's end that a transaction has used and freed again are never written; then the list of free pages has them,
//! which is a tree of LMDB's own. It is read here, and not by LMDB: a page that the file does not have would end the process
//! (`SIGBUS`) in its map.
//!
//! | of a meta page  | offset | of a page      | offset | of a node        | offset |
//! | --------------- | ------ | -------------- | ------ | ---------------- | ------ |
//! | magic number    | 16     | flags          | 10     | size, or page    | 0      |
//! | root of the tree | 80    | end of offsets | 12     | flags, or page   | 4      |
//! | last page       | 136    | offsets        | 16     | length of the key | 6     |
//! | transaction     | 144    |                |        | key, then data   | 8      |

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::limits::PAGE_BYTES;
use crate::format::segment::{u16_at, u32_at, u64_at};

const MAGIC: u32 = 0xBEEF_C0DE;
const META_PAGES: u64 = 2;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;

/// Bytes of a page before its content.
const PAGE_HEADER_BYTES: usize = 16;
/// Bytes of a node before its key.
const NODE_HEADER_BYTES: usize = 8;
/// The flag of a node whose data begins on the page that it names.
const IS_BIG: u16 = 1;
/// The number of no page.
const NO_PAGE: u64 = u64::MAX;

/// Whether all pages that the file lacks, from its end up to the last that the latest transaction knows, are free. False also
/// where the list of free pages cannot be made out.
pub(super) fn are_free(file: &File) -> io::Result<bool> {
    let bytes = file.metadata()?.len();
    let pages = Pages { file, count: bytes / PAGE_BYTES };
    match pages.free_from_end() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => Ok(false),
        found => found,
    }
}

/// The pages that a file has.
struct Pages<'a> {
    file: &'a File,
    count: u64,
}

impl Pages<'_> {
    fn free_from_end(&self) -> io::Result<bool> {
        let metas = (0..META_PAGES).map(|number| self.page(number)).collect::<io::Result<Vec<_>>>()?;
        let sound = metas.iter().filter(|meta| u32_at(meta, 16) == MAGIC);
        let meta = sound.max_by_key(|meta| u64_at(meta, 144)).ok_or(ErrorKind::InvalidData)?;
        let (root, last) = (u64_at(meta, 80), u64_at(meta, 136));
        let mut missing: BTreeSet<u64> = BTreeSet::new();
        self.for_each_free(root, &mut |page| {
            if (self.count..=last).contains(&page) {
                missing.insert(page);
            }
        })?;
        Ok(missing.len() as u64 == (last + 1).saturating_sub(self.count))
    }

    /// Visits the pages that the tree with this root lists.
    fn for_each_free(&self, root: u64, visit: &mut impl FnMut(u64)) -> io::Result<()> {
        let mut waiting = Vec::from_iter((root != NO_PAGE).then_some(root));
        // Each page of a tree has one parent: more visits than pages are a circle.
        let mut visits = 0;
        while let Some(number) = waiting.pop() {
            visits += 1;
            let page = self.page(number)?;
            let flags = u16_at(&page, 10);
            if visits > self.count || flags & (BRANCH | LEAF) == 0 {
                return Err(ErrorKind::InvalidData.into());
            }
            for node in nodes(&page)? {
                if flags & BRANCH != 0 {
                    waiting.push(u64::from(u32_at(node, 0)) | u64::from(u16_at(node, 4)) << 32);
                } else {
                    self.free_of(node)?.into_iter().for_each(&mut *visit);
                }
            }
        }
        Ok(())
    }

    /// The pages that a leaf's node lists: a count, and so many numbers.
    fn free_of(&self, node: &[u8]) -> io::Result<Vec<u64>> {
        let length = u32_at(node, 0) as usize;
        let data = node.get(NODE_HEADER_BYTES + usize::from(u16_at(node, 6))..).ok_or(ErrorKind::InvalidData)?;
        let far;
        let data = if u16_at(node, 4) & IS_BIG == 0 {
            data
        } else {
            far = self.far(u64_at(data.get(..8).ok_or(ErrorKind::InvalidData)?, 0), length)?;
            &far
        };
        let (numbers, _) = data.get(..length).ok_or(ErrorKind::InvalidData)?.as_chunks::<8>();
        let (count, numbers) = numbers.split_first().ok_or(ErrorKind::InvalidData)?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count <= numbers.len());
        let numbers = &numbers[..count.ok_or(ErrorKind::InvalidData)?];
        Ok(numbers.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }

    /// Data that has pages of its own.
    fn far(&self, first: u64, length: usize) -> io::Result<Vec<u8>> {
        let page = self.page(first)?;
        let at = first * PAGE_BYTES + PAGE_HEADER_BYTES as u64;
        if u16_at(&page, 10) & OVERFLOW == 0 || at + length as u64 > self.count * PAGE_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut out = vec![0; length];
        self.file.read_exact_at(&mut out, at)?;
        Ok(out)
    }

    fn page(&self, number: u64) -> io::Result<Vec<u8>> {
        if number >= self.count {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut page = vec![0; PAGE_BYTES as usize];
        self.file.read_exact_at(&mut page, number * PAGE_BYTES)?;
        Ok(page)
    }
}

/// The nodes of a page, each with the rest of the page behind it.
fn nodes(page: &[u8]) -> io::Result<Vec<&[u8]>> {
    let end = usize::from(u16_at(page, 12));
    let offsets = page.get(PAGE_HEADER_BYTES..end).ok_or(ErrorKind::InvalidData)?;
    let node = |offset: &[u8; 2]| page.get(usize::from(u16::from_le_bytes(*offset))..);
    let nodes = offsets.as_chunks::<2>().0.iter().map(node);
    let whole = nodes.map(|node| node.filter(|node| node.len() >= NODE_HEADER_BYTES));
    Ok(whole.collect::<Option<Vec<_>>>().ok_or(ErrorKind::InvalidData)?)
}
