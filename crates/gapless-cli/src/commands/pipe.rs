//! Standard output that may be a pipe whose reader goes away.

use super::CommandResult;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

pub(crate) fn discard_output<W: Write>(stdout: BufWriter<W>) -> CommandResult {
    let (_stdout, _unwritten) = stdout.into_parts();
    Ok(())
}

/// Sleeps for `pause`; true as soon as the pipe's reader has gone, which a process that writes nothing would not
/// notice.
pub(crate) fn is_reader_gone(pause: Duration) -> io::Result<bool> {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
    match poll(&mut polled, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL))
}
