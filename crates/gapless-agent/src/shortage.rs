//! A shortage of a resource may pass, and says nothing about the file, peer or request that it met.

use rustix::io::Errno;
use std::error::Error;
use std::io;

const SHORTAGES: [Errno; 7] =
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::NOSPC, Errno::DQUOT, Errno::FBIG];

/// `EX_TEMPFAIL` of sysexits.h(3head); a supervisor restarts such a process without a limit.
pub const EXIT_CODE: u8 = 75;

#[must_use]
pub fn is_shortage_errno(errno: Errno) -> bool {
    SHORTAGES.contains(&errno)
}

/// Whether a shortage is the error itself or among its causes.
///
/// ```
/// use gapless_agent::shortage::is_shortage;
/// use std::io::{Error, ErrorKind};
/// let full = Error::from_raw_os_error(28);
/// assert!(is_shortage(&full) && is_shortage(&Error::other(full)));
/// assert!(!is_shortage(&Error::from(ErrorKind::NotFound)));
/// ```
#[must_use]
pub fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    errno_of(error).is_some_and(is_shortage_errno)
}

/// The first error of the operating system in the chain of causes.
#[must_use]
pub fn errno_of(error: &(dyn Error + 'static)) -> Option<Errno> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(errno) = error.downcast_ref::<Errno>() {
            return Some(*errno);
        }
        next = match error.downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error().is_some() => return Errno::from_io_error(error),
            // The `source` of an `io::Error` would be the cause of the inner error.
            Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentFailure, Error as AgentError};

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn Error + Send + Sync>);

    #[test]
    fn shortage_is_found_among_causes() {
        let system = |errno: Errno| io::Error::from(errno);
        for errno in SHORTAGES {
            assert!(is_shortage(&system(errno)));
            assert!(is_shortage(&io::Error::other(Outer(errno.into()))));
            assert!(is_shortage(&Outer(io::Error::other(system(errno)).into())));
            let failure = AgentFailure::new("journaler", Box::new(Outer(system(errno).into())));
            assert!(is_shortage(&Outer(failure.into())));
        }
        for errno in [Errno::NOENT, Errno::IO, Errno::AGAIN, Errno::PERM] {
            let error = Outer(system(errno).into());
            assert_eq!((errno_of(&error), is_shortage(&error)), (Some(errno), false));
        }
        for error in [io::Error::other("no cause"), io::Error::from(io::ErrorKind::StorageFull)] {
            assert_eq!(errno_of(&error), None);
        }
        assert!(!is_shortage(&AgentError::AgentPanicked { message: "of itself".to_owned() }));
    }
}
