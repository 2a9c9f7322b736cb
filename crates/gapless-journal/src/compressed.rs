//! A segment compressed by LZ4, in pieces. Does I/O only on the given files.
//!
//! ```text
//! the header page as it is, 4096 bytes
//! each piece of the rest:
//!    0  u32 length on the disk     4  u32 length of the piece, 1 MiB at most
//!    8  u32 CRC-32C of the piece  12  zeros
//!   16  its bytes, as an LZ4 block
//! 16 zeros
//! ```
//! Numbers are little-endian. Pieces are short because reading one frame unpacks a whole piece.

use crate::descriptor::HEADER_PAGE_LENGTH;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::u32_at;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

const PIECE_LENGTH: usize = 64 << 10;
/// Length of pieces written by older versions.
const PIECE_LENGTH_MAX: usize = 1 << 20;
const PIECE_HEAD_LENGTH: usize = 16;

fn damaged(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

pub(crate) fn compress(segment: &File, length: u64, out: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE_LENGTH];
    segment.read_exact_at(&mut piece[..HEADER_PAGE_LENGTH], 0)?;
    out.write_all(&piece[..HEADER_PAGE_LENGTH])?;
    let mut compressed = vec![0; get_maximum_output_size(PIECE_LENGTH)];
    let mut position = HEADER_PAGE_LENGTH as u64;
    while position < length {
        let piece = &mut piece[..PIECE_LENGTH.min((length - position) as usize)];
        segment.read_exact_at(piece, position)?;
        let stored = compress_into(piece, &mut compressed).map_err(|error| damaged(error.to_string()))?;
        let mut head = [0; PIECE_HEAD_LENGTH];
        head[..4].copy_from_slice(&(stored as u32).to_le_bytes());
        head[4..8].copy_from_slice(&(piece.len() as u32).to_le_bytes());
        head[8..12].copy_from_slice(&crc32c(piece).to_le_bytes());
        out.write_all(&head)?;
        out.write_all(&compressed[..stored])?;
        position += piece.len() as u64;
    }
    out.write_all(&[0; PIECE_HEAD_LENGTH])
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompressedPiece {
    pub(crate) position: u64,
    pub(crate) stored_at: u64,
    length: u32,
    stored_length: u32,
    crc32c: u32,
}

impl CompressedPiece {
    pub(crate) const fn end(&self) -> u64 {
        self.position + self.length as u64
    }

    pub(crate) fn unpack(&self, stored: &File) -> io::Result<Vec<u8>> {
        let (mut compressed, mut piece) = (vec![0; self.stored_length as usize], vec![0; self.length as usize]);
        stored.read_exact_at(&mut compressed, self.stored_at + PIECE_HEAD_LENGTH as u64)?;
        let taken = decompress_into(&compressed, &mut piece);
        if taken.ok() != Some(piece.len()) || crc32c(&piece) != self.crc32c {
            let Self { stored_at, position, .. } = self;
            return Err(damaged(format!(
                "the piece at byte {stored_at} is damaged, which has the segment's bytes from {position} on"
            )));
        }
        Ok(piece)
    }
}

/// The first piece begins after the header page.
pub(crate) fn pieces_of(stored: &File) -> io::Result<Vec<CompressedPiece>> {
    let (mut position, mut stored_at) = (HEADER_PAGE_LENGTH as u64, HEADER_PAGE_LENGTH as u64);
    let (mut pieces, stored_length_max) = (Vec::new(), get_maximum_output_size(PIECE_LENGTH_MAX));
    loop {
        let mut head = [0; PIECE_HEAD_LENGTH];
        stored.read_exact_at(&mut head, stored_at)?;
        let (stored_length, length) = (u32_at(&head, 0), u32_at(&head, 4));
        if (stored_length, length) == (0, 0) {
            return Ok(pieces);
        }
        if stored_length as usize > stored_length_max || length as usize > PIECE_LENGTH_MAX {
            return Err(damaged(format!(
                "the piece at byte {stored_at} says that it has {length} bytes in {stored_length}"
            )));
        }
        pieces.push(CompressedPiece { position, length, stored_at, stored_length, crc32c: u32_at(&head, 8) });
        position += u64::from(length);
        stored_at += PIECE_HEAD_LENGTH as u64 + u64::from(stored_length);
    }
}

pub(crate) fn header_page_of(stored: &File) -> io::Result<Vec<u8>> {
    let mut page = vec![0; HEADER_PAGE_LENGTH];
    stored.read_exact_at(&mut page, 0)?;
    Ok(page)
}

/// Returns the number of bytes passed to `take`.
pub(crate) fn decompress(stored: &File, mut take: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<u64> {
    take(0, &header_page_of(stored)?)?;
    let pieces = pieces_of(stored)?;
    pieces.iter().try_for_each(|piece| take(piece.position, &piece.unpack(stored)?))?;
    Ok(pieces.last().map_or(HEADER_PAGE_LENGTH as u64, CompressedPiece::end))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn damaged_compression_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("segment");
        let bytes: Vec<u8> = (0..(4 * PIECE_LENGTH + 5_000) as u32).map(|at| (at / 7) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut stored = Vec::new();
        compress(&File::open(&path).unwrap(), bytes.len() as u64, &mut stored).unwrap();
        assert!(stored.len() < bytes.len() / 3, "{} bytes", stored.len());
        let stored_path = directory.path().join("stored");
        let read = |stored: &[u8]| {
            std::fs::write(&stored_path, stored).unwrap();
            let stored = &File::open(&stored_path).unwrap();
            let mut all = Vec::new();
            let length = decompress(stored, |position, piece| {
                assert_eq!(position, all.len() as u64);
                all.extend_from_slice(piece);
                Ok(())
            })?;
            assert_eq!(length, all.len() as u64);
            Ok::<_, io::Error>(all)
        };
        assert_eq!(read(&stored).unwrap(), bytes);
        for at in (HEADER_PAGE_LENGTH..stored.len() - 4).step_by(997) {
            let mut other = stored.clone();
            other[at] ^= 1;
            assert!(read(&other).is_ok_and(|read| read == bytes) || read(&other).is_err(), "byte {at}");
            assert!(read(&stored[..at]).is_err(), "cut at {at}");
        }
    }
}
