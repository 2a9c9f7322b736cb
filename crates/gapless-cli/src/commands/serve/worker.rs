//! One process for each request: its standard input is the request, its standard output the reply. Nothing here waits
//! for a pipe that the process's own children hold open. It has a process group of its own, so that a Ctrl-C lets it
//! finish, and a timeout kills its children, too.
//!
//! A lack of descriptors, memory or processes is not a refusal: the request waits until the program can be started.

use super::guarding::Guarding;
use crate::commands::to_stderr;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::shortage::is_shortage;
use gapless_rpc::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const REPLY_LENGTH_MAX: usize = 16 << 20;
/// The beginning of standard error is kept in a refusal.
const ERROR_LENGTH_MAX: usize = 8 << 10;
/// The other pipes then have their turn.
const READ_PER_TURN_BYTES: usize = 1 << 20;
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const START_AGAIN: Duration = Duration::from_millis(100);
const NOTE_INTERVAL_NS: u64 = 1_000_000_000;
/// Refusal codes other than exit codes, as used by shells, `env` and `timeout`.
const CODE_OUR_FAILURE: u32 = 125;
const CODE_NOT_STARTED: u32 = 127;
const CODE_SIGNAL: u32 = 128;

/// Kills `program` when `reason_to_end` returns a reason.
///
/// # Errors
/// That reason; a program that cannot be started, or exits with a code other than 0, which becomes the refusal's code,
/// with its standard error as the text.
pub(super) fn run(
    guard: &Guarding,
    (program, words): (&OsString, &[OsString]),
    request: &[u8],
    reason_to_end: impl Fn() -> Option<&'static str>,
) -> Result<Vec<u8>, Refusal> {
    let refused = |code: u32| move |error: io::Error| Refusal::new(code, format!("{}: {error}", program.display()));
    let failed = refused(CODE_OUR_FAILURE);
    let killed = |reason: &str| Refusal::new(CODE_SIGNAL + Signal::KILL.as_raw().unsigned_abs(), reason);
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = loop {
        match command.spawn() {
            Err(error) if is_shortage(&error) || error.kind() == io::ErrorKind::WouldBlock => {
                note_shortage(program, &error);
                if let Some(reason) = reason_to_end() {
                    return Err(killed(reason));
                }
                std::thread::sleep(START_AGAIN);
            }
            started => break started.map_err(refused(CODE_NOT_STARTED))?,
        }
    };
    let mut running = RunningProgram { child, guard, has_ended: false };
    guard.begin(running.child.id());
    let mut pipes = WorkerPipes::of(&mut running.child, request).map_err(failed)?;
    loop {
        let is_over = pipes.turn().map_err(failed)?;
        if pipes.output.len() > REPLY_LENGTH_MAX {
            return Err(Refusal::new(CODE_SIGNAL, "its reply is longer than 16 MiB"));
        }
        if is_over {
            break;
        }
        // The return drops the process, which kills it.
        if let Some(reason) = reason_to_end() {
            return Err(killed(reason));
        }
    }
    let status = running.wait().map_err(failed)?;
    if status.success() { Ok(pipes.output) } else { Err(refusal(program, status, &pipes.error)) }
}

/// Warns at most once a second over all workers.
fn note_shortage(program: &OsString, error: &io::Error) {
    static NEXT_NS: AtomicU64 = AtomicU64::new(0);
    let now_ns = monotonic_ns();
    let next_ns = NEXT_NS.load(Ordering::Relaxed);
    let is_mine =
        |at_ns| NEXT_NS.compare_exchange(at_ns, now_ns + NOTE_INTERVAL_NS, Ordering::Relaxed, Ordering::Relaxed);
    if now_ns >= next_ns && is_mine(next_ns).is_ok() {
        to_stderr!("note: a request waits, because {} cannot be started now: {error}", program.display());
    }
}

fn refusal(program: &OsString, status: ExitStatus, error: &[u8]) -> Refusal {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code.unsigned_abs(),
        (None, signal) => CODE_SIGNAL + signal.unwrap_or_default().unsigned_abs(),
    };
    let said = String::from_utf8_lossy(error).trim().to_owned();
    Refusal::new(code, if said.is_empty() { format!("{}: {status}", program.display()) } else { said })
}

/// Killed with its children on drop.
struct RunningProgram<'guard> {
    child: Child,
    guard: &'guard Guarding,
    has_ended: bool,
}

impl RunningProgram<'_> {
    fn wait(&mut self) -> io::Result<ExitStatus> {
        // The id is not reused before `wait`.
        self.guard.end(self.child.id());
        self.has_ended = true;
        self.child.wait()
    }
}

impl Drop for RunningProgram<'_> {
    fn drop(&mut self) {
        // The id may be another's after `wait`.
        if self.has_ended {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.wait();
    }
}

struct WorkerPipes<'a> {
    process: Pid,
    /// Readable at the end of the process; `None` without a descriptor, then `waitid` is polled.
    exit: Option<OwnedFd>,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    request: &'a [u8],
    output: Vec<u8>,
    error: Vec<u8>,
}

impl<'a> WorkerPipes<'a> {
    fn of(child: &mut Child, request: &'a [u8]) -> io::Result<Self> {
        let process = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let pipe = |fd: Option<OwnedFd>| {
            let file = File::from(fd.ok_or(io::ErrorKind::BrokenPipe)?);
            fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
            Ok::<_, io::Error>(Some(file))
        };
        Ok(Self {
            process,
            exit: pidfd_open(process, PidfdFlags::empty()).ok(),
            stdin: pipe(child.stdin.take().map(OwnedFd::from))?,
            stdout: pipe(child.stdout.take().map(OwnedFd::from))?,
            stderr: pipe(child.stderr.take().map(OwnedFd::from))?,
            request,
            output: Vec::new(),
            error: Vec::new(),
        })
    }

    /// Handles an event, if one comes in a while. True when the process has ended and its output is complete.
    fn turn(&mut self) -> io::Result<bool> {
        // Checked before reading: output written before the end is then complete.
        let has_ended = {
            let mut polled: Vec<_> = self.exit.iter().map(|exit| PollFd::new(exit, PollFlags::IN)).collect();
            polled.extend(self.stdin.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
            polled.extend(self.stdout.iter().chain(&self.stderr).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            match poll(&mut polled, Some(&POLL_INTERVAL)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            match self.exit {
                Some(_) => !polled[0].revents().is_empty(),
                None => self.has_ended()?,
            }
        };
        write(&mut self.stdin, &mut self.request)?;
        let (output, error) = (to_read(&self.stdout, has_ended)?, to_read(&self.stderr, has_ended)?);
        let output = output.min((REPLY_LENGTH_MAX + 1).saturating_sub(self.output.len()));
        read(&mut self.stdout, &mut self.output, output)?;
        read(&mut self.stderr, &mut self.error, error)?;
        // The rest is read, so that the process does not block on a full pipe.
        self.error.truncate(ERROR_LENGTH_MAX);
        Ok(has_ended)
    }
}

impl WorkerPipes<'_> {
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.process), options) {
            Ok(status) => Ok(status.is_some()),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn write(pipe: &mut Option<File>, bytes: &mut &[u8]) -> io::Result<()> {
    while let Some(file) = pipe {
        if bytes.is_empty() {
            *pipe = None;
            break;
        }
        match file.write(bytes) {
            Ok(count) => *bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A program may reply without reading everything.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => *pipe = None,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// An ended process's children may go on writing, so only the pipe's present content is read.
fn to_read(pipe: &Option<File>, has_ended: bool) -> io::Result<usize> {
    let Some(file) = pipe.as_ref().filter(|_| has_ended) else { return Ok(READ_PER_TURN_BYTES) };
    Ok(usize::try_from(ioctl_fionread(file)?).unwrap_or(usize::MAX))
}

fn read(pipe: &mut Option<File>, into: &mut Vec<u8>, count_max: usize) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    let until = into.len().saturating_add(count_max);
    while let Some(file) = pipe.as_mut().filter(|_| into.len() < until) {
        let length = piece.len().min(until - into.len());
        match file.read(&mut piece[..length]) {
            Ok(0) => *pipe = None,
            Ok(count) => into.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use gapless_testkit::limits::{is_alone, leave_files};
    use std::cell::{Cell, RefCell};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn request_waits_for_descriptors() {
        if !is_alone("commands::serve::worker::tests::request_waits_for_descriptors") {
            return;
        }
        let guard = Guarding::start().unwrap();
        let (cat, words) = (OsString::from("sh"), ["-c", "cat; exit 3"].map(OsString::from));
        for count in 0..12 {
            let (few, looks) = (RefCell::new(Some(leave_files(count))), Cell::new(0));
            let refused = run(&guard, (&cat, &words), b"request", || {
                looks.set(looks.get() + 1);
                if looks.get() == 2 {
                    few.take();
                }
                None
            });
            let refused = refused.expect_err("its exit code is 3");
            assert_eq!(refused.code, 3, "with {count} descriptors: {refused:?}");
        }
        let few = leave_files(0);
        let refused = run(&guard, (&cat, &words), b"", || Some("it is over")).expect_err("it was over");
        assert_eq!((refused.code, &*refused.text), (137, "it is over"));
        drop(few);
    }

    #[test]
    #[expect(unsafe_code, reason = "the length of a pipe is a system call that has no wrapper here")]
    fn large_pipe_is_read_to_the_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        // SAFETY: the descriptor is open, and the call takes a number.
        if unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 4 << 20) } < 0 {
            println!("SKIPPED: a pipe of 4 MiB needs a privilege that this process does not have");
            return;
        }
        let written = vec![b'x'; 3 << 20];
        writer.write_all(&written).unwrap();
        let (mut pipe, mut read_bytes) = (Some(File::from(OwnedFd::from(reader))), Vec::new());
        let count = to_read(&pipe, true).unwrap();
        writer.write_all(b"more").unwrap();
        read(&mut pipe, &mut read_bytes, count).unwrap();
        assert!(read_bytes == written, "{} bytes", read_bytes.len());
        assert_eq!(to_read(&pipe, false).unwrap(), READ_PER_TURN_BYTES);
    }
}
