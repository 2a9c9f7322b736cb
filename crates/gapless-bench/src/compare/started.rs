//! A program that the comparison starts: it ends when the comparison is interrupted, with all that it has started.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A program that was asked to end has this long, and is then killed.
const ENDING_TIME: Duration = Duration::from_secs(10);

/// Collects piped output. `command` gets a process group of its own, and the interrupt that sets `interrupted`, also if
/// only this process was sent it.
pub(super) fn output(command: &mut Command, interrupted: &AtomicBool) -> io::Result<Output> {
    output_within(ENDING_TIME, command, interrupted)
}

fn output_within(ending_time: Duration, command: &mut Command, interrupted: &AtomicBool) -> io::Result<Output> {
    let child = command.process_group(0).spawn()?;
    let group = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process has a number");
    std::thread::scope(|scope| {
        let (sender, ended) = channel();
        scope.spawn(move || sender.send(child.wait_with_output()));
        let mut asked: Option<Instant> = None;
        loop {
            match ended.recv_timeout(POLL_INTERVAL) {
                Ok(output) => return output,
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("who waited for it has gone")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let signal = match asked {
                None if interrupted.load(Ordering::Relaxed) => rustix::process::Signal::INT,
                Some(since) if since.elapsed() > ending_time => rustix::process::Signal::KILL,
                _ => continue,
            };
            asked = Some(Instant::now());
            // The process may have ended just now.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn what_it_writes_is_collected() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo word; echo other >&2; exit 3"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = output(&mut command, &AtomicBool::new(false)).unwrap();
        assert_eq!((&*output.stdout, &*output.stderr), (&b"word\n"[..], &b"other\n"[..]));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn interrupt_ends_process_and_children() {
        let interrupted = AtomicBool::new(true);
        // The process started with `&` ignores interrupts, as a shell starts it, and is killed.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]).stdout(Stdio::piped());
        let begun = Instant::now();
        // The pipe is open as long as one of them lives.
        assert!(!output_within(Duration::from_millis(100), &mut command, &interrupted).unwrap().status.success());
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
