//! The write buffer of the `pwrite` path; buffered bytes do not survive the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub(crate) struct WriteBuffer {
    bytes: Box<[u8]>,
    filled: usize,
    position: u64,
}

impl WriteBuffer {
    pub(crate) fn new(length: usize, position: u64) -> Self {
        Self { bytes: vec![0; length].into_boxed_slice(), filled: 0, position }
    }

    pub(crate) fn restart(&mut self, position: u64) {
        debug_assert_eq!(self.filled, 0, "a buffer is flushed before its file changes");
        self.filled = 0;
        self.position = position;
    }

    pub(crate) fn push(&mut self, file: &File, frames: &[u8]) -> io::Result<()> {
        if frames.len() > self.bytes.len() - self.filled {
            self.flush(file)?;
            if frames.len() >= self.bytes.len() {
                file.write_all_at(frames, self.position)?;
                self.position += frames.len() as u64;
                return Ok(());
            }
        }
        self.bytes[self.filled..self.filled + frames.len()].copy_from_slice(frames);
        self.filled += frames.len();
        Ok(())
    }

    pub(crate) fn flush(&mut self, file: &File) -> io::Result<()> {
        if self.filled > 0 {
            file.write_all_at(&self.bytes[..self.filled], self.position)?;
            self.position += self.filled as u64;
            self.filled = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::WriteBuffer;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;

    proptest! {
        #[test]
        fn file_has_all_pushed_frames(
            length in 1usize..64,
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..20),
        ) {
            let file = tempfile::tempfile().unwrap();
            let mut buffer = WriteBuffer::new(length, 5);
            for piece in &pieces {
                buffer.push(&file, piece).unwrap();
            }
            buffer.flush(&file).unwrap();
            let expected = pieces.concat();
            let mut found = vec![0; expected.len()];
            file.read_exact_at(&mut found, 5).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
