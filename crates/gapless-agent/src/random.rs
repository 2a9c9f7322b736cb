//! `fill`: random bytes of the operating system.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, Read};

/// Fills `bytes` with random bytes of the system; from `/dev/urandom` if the system call is refused, as by an old
/// seccomp filter.
///
/// # Errors
/// Neither source is available.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(length) => filled += length,
            Err(Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return File::open("/dev/urandom")?.read_exact(&mut bytes[filled..]),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        let drawn = || {
            let mut bytes = [0; 32];
            super::fill(&mut bytes).unwrap();
            bytes
        };
        assert_ne!(drawn(), drawn());
    }
}
