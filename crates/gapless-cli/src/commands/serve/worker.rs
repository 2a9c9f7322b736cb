//! One request, one process: its standard input is the request, its standard output the reply.
//!
//! Nothing here waits for a pipe that the process's own children hold open: when the process has ended, what it has written is
//! the reply. It has a process group of its own, so that a Ctrl-C on the terminal lets it finish, and so that a request whose
//! time is over ends it with its children.

use super::guard::Guard;
use gapless_rpc::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Bytes of a reply at most.
const REPLY_LENGTH_MAX: usize = 16 << 20;
/// So much of what it says on standard error is the text of a refusal: the beginning.
const ERROR_LENGTH_MAX: usize = 8 << 10;
/// Pieces of 16 KiB that are read before the other pipes have their turn: more than a pipe holds at the process's end.
const PIECES_PER_TURN: usize = 64;
/// Between two looks at whether it is still to run.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Refusal codes that are no exit code: as shells have them.
const CODE_NOT_STARTED: u32 = 127;
const CODE_SIGNAL: u32 = 128;

/// Runs `program` for one request, until `reason_to_end` says that it must end.
///
/// # Errors
/// That reason; a program that cannot be started or ends with another code than 0, which is the refusal's; its standard error is the text.
pub(super) fn run(
    guard: &Guard,
    (program, words): (&OsString, &[OsString]),
    request: &[u8],
    reason_to_end: impl Fn() -> Option<&'static str>,
) -> Result<Vec<u8>, Refusal> {
    let failed = |error: io::Error| Refusal::new(CODE_NOT_STARTED, format!("{}: {error}", program.display()));
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut running = Running { child: command.spawn().map_err(failed)?, guard, has_ended: false };
    guard.begin(running.child.id());
    let mut pipes = Pipes::of(&mut running.child, request).map_err(failed)?;
    loop {
        let is_over = pipes.turn().map_err(failed)?;
        if pipes.output.len() > REPLY_LENGTH_MAX {
            return Err(Refusal::new(CODE_SIGNAL, "its reply is longer than 16 MiB"));
        }
        if is_over {
            break;
        }
        // With this the process is gone.
        if let Some(reason) = reason_to_end() {
            return Err(Refusal::new(CODE_SIGNAL + Signal::KILL.as_raw().unsigned_abs(), reason));
        }
    }
    let status = running.wait().map_err(failed)?;
    if status.success() { Ok(pipes.output) } else { Err(refusal(program, status, &pipes.error)) }
}

fn refusal(program: &OsString, status: ExitStatus, error: &[u8]) -> Refusal {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code.unsigned_abs(),
        (None, signal) => CODE_SIGNAL + signal.unwrap_or_default().unsigned_abs(),
    };
    let said = String::from_utf8_lossy(error).trim().to_owned();
    Refusal::new(code, if said.is_empty() { format!("{}: {status}", program.display()) } else { said })
}

/// The process; dropped before its end, it and its children are killed.
struct Running<'guard> {
    child: Child,
    guard: &'guard Guard,
    has_ended: bool,
}

impl Running<'_> {
    /// Takes the status of what has ended.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        // The number is its own until it has been waited for.
        self.guard.end(self.child.id());
        self.has_ended = true;
        self.child.wait()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Nobody is killed after `wait`: its number may be another's.
        if self.has_ended {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.wait();
    }
}

/// What is written to and read from a process.
struct Pipes<'a> {
    exit: OwnedFd,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    request: &'a [u8],
    output: Vec<u8>,
    error: Vec<u8>,
}

impl<'a> Pipes<'a> {
    fn of(child: &mut Child, request: &'a [u8]) -> io::Result<Self> {
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let pipe = |fd: Option<OwnedFd>| {
            let file = File::from(fd.ok_or(io::ErrorKind::BrokenPipe)?);
            fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
            Ok::<_, io::Error>(Some(file))
        };
        Ok(Self {
            exit: pidfd_open(pid, PidfdFlags::empty())?,
            stdin: pipe(child.stdin.take().map(OwnedFd::from))?,
            stdout: pipe(child.stdout.take().map(OwnedFd::from))?,
            stderr: pipe(child.stderr.take().map(OwnedFd::from))?,
            request,
            output: Vec::new(),
            error: Vec::new(),
        })
    }

    /// Waits a while for something to do, and does it. True when the process has ended and what it wrote is here.
    fn turn(&mut self) -> io::Result<bool> {
        // What has been written before the end is there when the end is seen.
        let has_ended = {
            let mut polled = vec![PollFd::new(&self.exit, PollFlags::IN)];
            polled.extend(self.stdin.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
            polled.extend(self.stdout.iter().chain(&self.stderr).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            match poll(&mut polled, Some(&LOOK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => !polled[0].revents().is_empty(),
                Err(errno) => return Err(errno.into()),
            }
        };
        write(&mut self.stdin, &mut self.request)?;
        read(&mut self.stdout, &mut self.output, REPLY_LENGTH_MAX + 1)?;
        read(&mut self.stderr, &mut self.error, usize::MAX)?;
        // The rest is read all the same: it must not wait for room in the pipe.
        self.error.truncate(ERROR_LENGTH_MAX);
        Ok(has_ended)
    }
}

/// Writes what there is room for; closes the pipe behind the last byte, or when nobody reads it.
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
            // It may answer without having read all.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => *pipe = None,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what is there, until `into` has `length_max` bytes; closes the pipe at its end.
fn read(pipe: &mut Option<File>, into: &mut Vec<u8>, length_max: usize) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    for _ in 0..PIECES_PER_TURN {
        let Some(file) = pipe.as_mut().filter(|_| into.len() < length_max) else { break };
        match file.read(&mut piece) {
            Ok(0) => *pipe = None,
            Ok(count) => into.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
