//! [`SegmentUnpacker`]: unpacks a compressed segment into memory piece by piece, as it is read; pieces and positions
//! are cached for later readers.

use crate::archived::ArchiveLocation;
use crate::compressed::{CompressedPiece, header_page_of, pieces_of};
use crate::disk::unpoisoned;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// Limit of segments with unpacked pieces in memory: each has a file descriptor.
const UNPACKED_MAX: usize = 64;
/// Limit of their bytes; the segment being read may exceed it.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;
/// Limit of cached piece positions, over all segments: 32 MiB.
const KNOWN_PIECES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct SegmentUnpacker {
    stored: File,
    unpacked: Arc<UnpackedSegment>,
}

#[derive(Debug)]
struct UnpackedSegment {
    /// The segment, with holes where it is not unpacked yet.
    memory: File,
    pieces: Arc<[CompressedPiece]>,
    is_unpacked: Box<[AtomicBool]>,
    /// Total length in memory; locked during unpacking.
    bytes: Mutex<u64>,
}

impl SegmentUnpacker {
    pub(crate) fn begin(archived: &ArchiveLocation, stored: File) -> io::Result<Self> {
        let found = unpoisoned(UNPACKING_CACHE.lock()).find(archived);
        let unpacked = match found {
            CacheLookup { unpacked: Some(unpacked), .. } => unpacked,
            CacheLookup { pieces, .. } => {
                let pieces = pieces.map_or_else(|| pieces_of(&stored).map(Arc::from), Ok)?;
                let unpacked = Arc::new(UnpackedSegment::new(archived, &stored, pieces)?);
                unpoisoned(UNPACKING_CACHE.lock()).put(archived, &unpacked);
                unpacked
            }
        };
        Ok(Self { stored, unpacked })
    }

    pub(crate) fn memory(&self) -> &File {
        &self.unpacked.memory
    }

    /// Returns the end of the last unpacked piece.
    ///
    /// # Errors
    /// The archive cannot be read, or is damaged.
    pub(crate) fn unpack(&self, from: u64, to: u64) -> io::Result<u64> {
        let UnpackedSegment { memory, pieces, is_unpacked, bytes } = &*self.unpacked;
        let first = pieces.partition_point(|piece| piece.end() <= from);
        let mut end = pieces.get(first).map_or(from, |piece| piece.position.max(from));
        for (piece, is_unpacked) in
            pieces.iter().zip(is_unpacked).skip(first).take_while(|(piece, _)| piece.position < to)
        {
            // The piece's bytes are in memory; pairs with the release below.
            if !is_unpacked.load(Ordering::Acquire) {
                let mut bytes = unpoisoned(bytes.lock());
                let piece_bytes = piece.unpack(&self.stored)?;
                memory.write_all_at(&piece_bytes, piece.position)?;
                // Another thread may have been faster, with the same bytes.
                if !is_unpacked.swap(true, Ordering::Release) {
                    *bytes += piece_bytes.len() as u64;
                }
            }
            end = piece.end();
        }
        Ok(end)
    }

    pub(crate) fn stored_at(&self, position: u64) -> u64 {
        let pieces = &self.unpacked.pieces;
        let behind = pieces.partition_point(|piece| piece.position <= position);
        behind.checked_sub(1).map_or(position, |at| pieces[at].stored_at)
    }
}

impl UnpackedSegment {
    fn new(archived: &ArchiveLocation, stored: &File, pieces: Arc<[CompressedPiece]>) -> io::Result<Self> {
        let page = header_page_of(stored)?;
        let length = pieces.last().map_or(page.len() as u64, CompressedPiece::end);
        if length != archived.segment_bytes {
            return Err(io::Error::other(format!("{length} bytes of {} are in it", archived.segment_bytes)));
        }
        let memory = File::from(rustix::fs::memfd_create("gapless-archived", rustix::fs::MemfdFlags::CLOEXEC)?);
        memory.set_len(length)?;
        memory.write_all_at(&page, 0)?;
        let is_unpacked = pieces.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { memory, pieces, is_unpacked, bytes: Mutex::new(0) })
    }
}

static UNPACKING_CACHE: LazyLock<Mutex<UnpackingCache>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct UnpackingCache {
    segments: HashMap<ArchiveLocation, CachedSegment>,
    uses: u64,
}

struct CachedSegment {
    pieces: Arc<[CompressedPiece]>,
    unpacked: Option<Arc<UnpackedSegment>>,
    used: u64,
}

#[derive(Default)]
struct CacheLookup {
    pieces: Option<Arc<[CompressedPiece]>>,
    unpacked: Option<Arc<UnpackedSegment>>,
}

impl UnpackingCache {
    fn find(&mut self, archived: &ArchiveLocation) -> CacheLookup {
        self.uses += 1;
        let Some(segment) = self.segments.get_mut(archived) else { return CacheLookup::default() };
        segment.used = self.uses;
        CacheLookup { pieces: Some(Arc::clone(&segment.pieces)), unpacked: segment.unpacked.clone() }
    }

    fn put(&mut self, archived: &ArchiveLocation, unpacked: &Arc<UnpackedSegment>) {
        let known =
            |segments: &HashMap<_, CachedSegment>| segments.values().map(|segment| segment.pieces.len()).sum::<usize>();
        while !self.segments.is_empty() && known(&self.segments) + unpacked.pieces.len() > KNOWN_PIECES_MAX {
            let oldest = self.segments.iter().min_by_key(|(_, segment)| segment.used);
            let oldest = oldest.map(|(archived, _)| archived.clone()).expect("there are some");
            self.segments.remove(&oldest);
        }
        self.make_room();
        let (pieces, unpacked) = (Arc::clone(&unpacked.pieces), Some(Arc::clone(unpacked)));
        self.segments.insert(archived.clone(), CachedSegment { pieces, unpacked, used: self.uses });
    }

    /// Least recently used first.
    fn make_room(&mut self) {
        let mut unpacked: Vec<_> = self.segments.values_mut().filter(|segment| segment.unpacked.is_some()).collect();
        unpacked.sort_unstable_by_key(|segment| std::cmp::Reverse(segment.used));
        let mut bytes = 0;
        for (count, segment) in unpacked.into_iter().enumerate() {
            bytes += segment.unpacked.as_ref().map_or(0, |unpacked| *unpoisoned(unpacked.bytes.lock()));
            if bytes > UNPACKED_BYTES_MAX || count + 1 >= UNPACKED_MAX {
                segment.unpacked = None;
            }
        }
    }
}
