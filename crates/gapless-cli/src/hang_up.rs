//! SIGHUP that was ignored when the program was started, as by `nohup`, stays ignored: the handler of Ctrl-C takes SIGHUP, too.

#![expect(unsafe_code, reason = "the standard library knows no signals")]

/// Runs `install`, which sets a handler of SIGHUP among others.
pub(crate) fn kept_ignored<T>(install: impl FnOnce() -> T) -> T {
    let ignore = || {
        // SAFETY: SIG_IGN is no function that could be run in a bad moment, and the signal is one that exists.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) }
    };
    let before = ignore();
    let installed = install();
    if before == libc::SIG_IGN {
        ignore();
    }
    installed
}
