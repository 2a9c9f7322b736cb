//! `identify`: the operating system's identity of the peer of a connection, and its pidfd.

use crate::registry::error::RegistryError;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

/// Identity of a peer, from the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    pub process_id: u32,
    pub user_id: u32,
}

/// The descriptor becomes readable at the peer's death. Fails if the peer is dead already, or if no descriptor is left:
/// [`lacks_descriptors`].
pub fn identify(socket: impl AsFd) -> Result<(PeerIdentity, OwnedFd), RegistryError> {
    // Not rustix's: the process id of a peer in another namespace is 0, which its type cannot hold.
    let credentials =
        getsockopt(&socket, sockopt::PeerCredentials).map_err(RegistryError::system("asking who connects"))?;
    let Some(pid) = Pid::from_raw(credentials.pid()).filter(|_| credentials.pid() > 0) else {
        return Err(RegistryError::OtherNamespace);
    };
    let process_id = pid.as_raw_nonzero().get() as u32;
    let dead = || RegistryError::Dead { process_id };
    let no_pidfd = |errno: Errno| match errno {
        Errno::MFILE | Errno::NFILE => RegistryError::system("opening a pidfd")(errno),
        _ => dead(),
    };
    // Exact from Linux 6.5 on. Earlier, another process may have the id by now: then the connection is closed, unless a
    // child has inherited it.
    let pidfd = match getsockopt(&socket, sockopt::PeerPidfd) {
        Ok(pidfd) => pidfd,
        Err(nix::errno::Errno::ENOPROTOOPT) => {
            let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(no_pidfd)?;
            if is_hung_up(&socket) {
                return Err(dead());
            }
            pidfd
        }
        Err(errno) => return Err(no_pidfd(Errno::from_raw_os_error(errno as i32))),
    };
    if is_dead(&pidfd) {
        return Err(dead());
    }
    Ok((PeerIdentity { process_id, user_id: credentials.uid() }, pidfd))
}

/// Whether this process, or the machine, had no descriptor left.
pub fn lacks_descriptors(error: &RegistryError) -> bool {
    matches!(error, RegistryError::System { source, .. }
        if matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE)))
}

pub fn is_dead(pidfd: impl AsFd) -> bool {
    !poll_flags(pidfd, PollFlags::IN).is_empty()
}

fn is_hung_up(socket: impl AsFd) -> bool {
    poll_flags(socket, PollFlags::RDHUP).intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

fn poll_flags(fd: impl AsFd, flags: PollFlags) -> PollFlags {
    let mut fds = [PollFd::new(&fd, flags)];
    // The poll does not sleep, so no signal interrupts it; after an error there are no events.
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    fds[0].revents()
}
