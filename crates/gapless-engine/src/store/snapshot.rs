//! Encoding of a whole state. It is written piece by piece while transactions continue, and read at once.
//!
//! ```text
//! u64  magic "GAPSTORE", then pieces, each:
//!      u32  length of the body, at most 64 MiB
//!      u32  CRC-32C of what follows in the piece
//!      u32  number of the piece, from 0
//!      u8   kind
//!      body
//! kind 1, the first piece: u16 version, u64 hash of the state, u64 objects, u16 collections, then each:
//!      u16 number, u8 kind, u8 kind of the keys, u64 type of the objects, u16 version of the objects
//! kind 2: operations, as in changes, one after the other; of a map in any order
//! kind 3, the last piece: nothing
//! ```
//!
//! Numbers are little-endian. A snapshot is the state at the time of its begin: an object that is changed before the
//! walk reaches it is first written as it was.

use super::Store;
use super::changes::ChangesReader;
use super::error::StoreError;
use gapless_wire::checksum::crc32c;
use std::io::{Read, Write};

pub(crate) const MAGIC: [u8; 8] = *b"GAPSTORE";
const VERSION: u16 = 1;
const PIECE_HEAD: usize = 13;
const BODY_LENGTH_MAX: usize = 64 << 20;
const KIND_HEAD: u8 = 1;
const KIND_OPERATIONS: u8 = 2;
const KIND_END: u8 = 3;
const PIECE_LENGTH: usize = 1 << 16;

pub(super) struct SnapshotProgress {
    next_piece: u32,
    collection: usize,
}

impl Store {
    /// Appends the snapshot's first bytes; [`Self::snapshot_step`] returns the rest, and transactions may run in
    /// between.
    ///
    /// # Errors
    /// [`StoreError::Order`] if a snapshot is in progress.
    pub fn begin_snapshot(&mut self, out: &mut Vec<u8>) -> Result<(), StoreError> {
        if self.progress.is_some() {
            return Err(StoreError::Order("a snapshot is under way already"));
        }
        out.extend_from_slice(&MAGIC);
        let mut progress = SnapshotProgress { next_piece: 0, collection: 0 };
        progress.piece(out, KIND_HEAD, |out| self.describe_collections(out));
        let preserved = &mut self.tracker.preserved;
        preserved.is_freezing = true;
        preserved.epoch += 1;
        let collections = &mut self.collections;
        progress
            .piece(out, KIND_OPERATIONS, |out| collections.iter_mut().for_each(|collection| collection.freeze(out)));
        self.progress = Some(progress);
        Ok(())
    }

    fn describe_collections(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.state_hash().to_le_bytes());
        out.extend_from_slice(&self.tracker.usage.objects.to_le_bytes());
        out.extend_from_slice(&(self.collections.len() as u16).to_le_bytes());
        for collection in &self.collections {
            let identity = collection.identity();
            out.extend_from_slice(&identity.id.to_le_bytes());
            out.extend_from_slice(&[identity.kind as u8, identity.key_kind]);
            out.extend_from_slice(&identity.object_type.to_le_bytes());
            out.extend_from_slice(&identity.version.to_le_bytes());
        }
    }

    /// Appends about `length` bytes; returns whether they were the last. A step scans a bounded number of slots, so a
    /// piece may be short.
    ///
    /// # Errors
    /// [`StoreError::Order`] if no snapshot is in progress.
    pub fn snapshot_step(&mut self, out: &mut Vec<u8>, length: usize) -> Result<bool, StoreError> {
        let Some(progress) = &mut self.progress else {
            return Err(StoreError::Order("no snapshot is under way"));
        };
        let Self { collections, tracker, .. } = self;
        let pieces = &mut tracker.preserved.pieces;
        if pieces.is_empty() && progress.collection == collections.len() {
            progress.piece(out, KIND_END, |_| {});
            self.cancel_snapshot();
            return Ok(true);
        }
        let mut next = progress.collection;
        progress.piece(out, KIND_OPERATIONS, |out| {
            let limit = out.len() + length.min(BODY_LENGTH_MAX / 4);
            // Preserved objects first, so that their backlog stays small.
            while out.len() < limit
                && let Some(preserved) = tracker.preserved.pieces.pop_front()
            {
                out.extend_from_slice(&preserved);
            }
            if out.len() < limit
                && let Some(collection) = collections.get_mut(next)
            {
                next += usize::from(collection.write_frozen(tracker, out, limit));
            }
        });
        progress.collection = next;
        Ok(false)
    }

    pub fn cancel_snapshot(&mut self) {
        self.progress = None;
        self.tracker.preserved.is_freezing = false;
        self.tracker.preserved.pieces.clear();
        self.collections.iter_mut().for_each(|collection| collection.thaw());
    }

    #[must_use]
    pub const fn is_taking_snapshot(&self) -> bool {
        self.progress.is_some()
    }

    /// Bytes of objects that were changed during the snapshot; at most the size of the state at its begin.
    #[must_use]
    pub fn preserved_bytes(&self) -> u64 {
        self.tracker.preserved.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// Writes a whole snapshot.
    ///
    /// # Errors
    /// As [`Self::begin_snapshot`], or the error of `write`.
    pub fn write_snapshot(&mut self, write: &mut impl Write) -> Result<(), StoreError> {
        let mut out = Vec::with_capacity(2 * PIECE_LENGTH);
        self.begin_snapshot(&mut out)?;
        let mut is_last = false;
        loop {
            if let Err(source) = write.write_all(&out) {
                self.cancel_snapshot();
                return Err(StoreError::System { action: "writing a snapshot", source });
            }
            if is_last {
                return Ok(());
            }
            out.clear();
            is_last = self.snapshot_step(&mut out, PIECE_LENGTH)?;
        }
    }

    /// Replaces the contents. Reads nothing after the last piece.
    ///
    /// # Errors
    /// The snapshot cannot be read, is damaged or incomplete, or has contents unknown to this store. The store is empty
    /// then.
    pub fn read_snapshot(&mut self, read: &mut impl Read) -> Result<(), StoreError> {
        self.clear();
        let mut piece = 0;
        self.read_pieces(read, &mut piece).map_err(|error| {
            self.clear();
            match error {
                StoreError::System { .. } => error,
                StoreError::Snapshot { .. } => error,
                error => StoreError::Snapshot { piece, reason: error.to_string() },
            }
        })
    }

    fn read_pieces(&mut self, read: &mut impl Read, number: &mut u32) -> Result<(), StoreError> {
        let mut magic = [0; MAGIC.len()];
        fill(read, &mut magic)?;
        let damaged = |piece, reason: &str| StoreError::Snapshot { piece, reason: reason.to_owned() };
        if magic != MAGIC {
            return Err(damaged(0, "it does not begin as a snapshot does"));
        }
        let mut expected = None;
        let mut body = Vec::new();
        loop {
            let kind = read_piece(read, *number, &mut body)?;
            match (kind, &expected) {
                (KIND_HEAD, None) => expected = Some(self.read_head(&body)?),
                (KIND_OPERATIONS, Some(_)) => self.apply_piece(&body)?,
                (KIND_END, Some(expected)) if body.is_empty() => return self.check(expected, *number),
                _ => return Err(damaged(*number, "a piece of this kind does not belong here")),
            }
            *number = number.checked_add(1).ok_or_else(|| damaged(*number, "it has too many pieces"))?;
        }
    }

    fn read_head(&self, body: &[u8]) -> Result<ExpectedTotals, StoreError> {
        let unusable = |reason: String| StoreError::Snapshot { piece: 0, reason };
        let mut reader = ChangesReader::new(body);
        self.read_head_fields(&mut reader).unwrap_or_else(|flaw| Err(flaw.0.reason)).map_err(unusable)
    }

    fn read_head_fields(
        &self,
        reader: &mut ChangesReader<'_>,
    ) -> Result<Result<ExpectedTotals, String>, super::changes::ChangeError> {
        let version = u16::from_le_bytes(reader.array("the version")?);
        if version != VERSION {
            return Ok(Err(format!(
                "it is of version {version}, {VERSION} is known here: run the program that wrote it"
            )));
        }
        let hash = u64::from_le_bytes(reader.array("the hash")?);
        let objects = u64::from_le_bytes(reader.array("the number of objects")?);
        let mut is_comparable = true;
        for _ in 0..u16::from_le_bytes(reader.array("the number of collections")?) {
            let id = u16::from_le_bytes(reader.array("the number of a collection")?);
            let [kind, key_kind] = reader.array("the kind of a collection")?;
            let object_type = u64::from_le_bytes(reader.array("the type of objects")?);
            let version = u16::from_le_bytes(reader.array("the version of objects")?);
            let position = self.positions.get(usize::from(id)).and_then(|place| place.checked_sub(1));
            let Some(position) = position else {
                return Ok(Err(format!("it has collection {id}, which is not declared here: run a newer program")));
            };
            let known = self.collections[usize::from(position)].identity();
            if (kind, key_kind, object_type) != (known.kind as u8, known.key_kind, known.object_type) {
                return Ok(Err(format!("its collection {id} is of other types than {} here", known.name)));
            }
            if version > known.version {
                return Ok(Err(format!(
                    "its collection {} ({id}) has objects of version {version}, {} is known here: run a newer program",
                    known.name, known.version
                )));
            }
            is_comparable &= version == known.version;
        }
        if !reader.is_at_end() {
            return Ok(Err("its head is longer than it says".to_owned()));
        }
        Ok(Ok(ExpectedTotals { hash, objects, is_comparable }))
    }

    fn check(&self, expected: &ExpectedTotals, piece: u32) -> Result<(), StoreError> {
        let (objects, hash) = (self.tracker.usage.objects, self.state_hash());
        // Objects of older versions have another encoding now.
        if objects != expected.objects || (expected.is_comparable && hash != expected.hash) {
            let reason = format!(
                "{objects} objects with hash {hash:016x} are there, {} with {:016x} were written",
                expected.objects, expected.hash
            );
            return Err(StoreError::Snapshot { piece, reason });
        }
        Ok(())
    }
}

struct ExpectedTotals {
    hash: u64,
    objects: u64,
    is_comparable: bool,
}

impl SnapshotProgress {
    fn piece(&mut self, out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.next_piece.to_le_bytes());
        out.push(kind);
        write(out);
        let length = (out.len() - begin - PIECE_HEAD) as u32;
        let sum = crc32c(&out[begin + 8..]);
        out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        out[begin + 4..begin + 8].copy_from_slice(&sum.to_le_bytes());
        self.next_piece += 1;
    }
}

fn fill(read: &mut impl Read, bytes: &mut [u8]) -> Result<(), StoreError> {
    read.read_exact(bytes).map_err(|source| StoreError::System { action: "reading a snapshot", source })
}

fn read_piece(read: &mut impl Read, number: u32, body: &mut Vec<u8>) -> Result<u8, StoreError> {
    let damaged = |reason: String| StoreError::Snapshot { piece: number, reason };
    let mut head = [0; PIECE_HEAD - 5];
    fill(read, &mut head)?;
    let (length, sum) = head.split_at(4);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let length = word(length) as usize;
    if length > BODY_LENGTH_MAX {
        return Err(damaged(format!("a body of {length} bytes, at most {BODY_LENGTH_MAX} are possible")));
    }
    body.clear();
    // Reads only existing bytes, so that a damaged length allocates no memory.
    let wanted = length as u64 + 5;
    let action = "reading a snapshot";
    let found = read.take(wanted).read_to_end(body).map_err(|source| StoreError::System { action, source })?;
    if found as u64 != wanted {
        return Err(damaged("it ends in the middle of a piece".to_owned()));
    }
    if crc32c(body) != word(sum) {
        return Err(damaged("its checksum is wrong: it is damaged".to_owned()));
    }
    if word(&body[..4]) != number {
        return Err(damaged(format!("piece {} stands here", word(&body[..4]))));
    }
    let kind = body[4];
    body.drain(..5);
    Ok(kind)
}
