//! Signals that the standard library leaves to their defaults.

#![expect(unsafe_code, reason = "the standard library knows no signals")]

/// `install` sets handlers. A SIGHUP that was ignored at the program's start, as by `nohup`, stays ignored.
pub(crate) fn kept_ignored<T>(install: impl FnOnce() -> T) -> T {
    let ignore = || {
        // SAFETY: SIG_IGN runs no code in signal context, and the signal exists.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) }
    };
    let before = ignore();
    let installed = install();
    if before == libc::SIG_IGN {
        ignore();
    }
    installed
}

/// A write beyond the file size limit (`ulimit -f`) returns EFBIG; SIGXFSZ would kill the process silently. A handler,
/// because child processes would inherit SIG_IGN.
pub(crate) fn survive_file_size_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, so it may run at any moment; the signal exists.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}
