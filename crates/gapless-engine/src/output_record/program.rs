//! `program`: identifies the program that handles the frames by a number.

use gapless_wire::checksum::crc32c;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

pub(super) fn program(name: Option<&str>) -> u64 {
    static OF_EXECUTABLE: OnceLock<u64> = OnceLock::new();
    match name {
        Some(name) => (name.len() as u64) << 32 | u64::from(crc32c(name.as_bytes())),
        None => *OF_EXECUTABLE.get_or_init(|| {
            // An unreadable executable gets a random number, so each start counts as another program and logs a
            // warning.
            of_file(Path::new("/proc/self/exe")).unwrap_or_else(|_| gapless_transport::token::random_token() as u64)
        }),
    }
}

fn of_file(path: &Path) -> std::io::Result<u64> {
    const PIECE_LENGTH: u64 = 1 << 20;
    let file = File::open(path)?;
    let (mut length, mut sum) = (0, 0u32);
    loop {
        let mut piece = sum.to_le_bytes().to_vec();
        let read = (&file).take(PIECE_LENGTH).read_to_end(&mut piece)?;
        if read == 0 {
            return Ok(length << 32 | u64::from(sum));
        }
        (length, sum) = (length + read as u64, crc32c(&piece));
    }
}
