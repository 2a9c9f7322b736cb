//! Signals that the standard library leaves to their defaults.

#![expect(unsafe_code, reason = "the standard library knows no signals")]

/// Runs `install`, which sets a handler of SIGHUP among others. SIGHUP that was ignored when the program was started, as by `nohup`,
/// stays ignored.
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

/// Turns a write beyond the limit of file sizes (`ulimit -f`) into an error, EFBIG: SIGXFSZ would end the process without a word.
/// A handler, not SIG_IGN, which other programs would inherit.
pub(crate) fn survive_file_size_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, so it may run at any moment; the signal is one that exists.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}
