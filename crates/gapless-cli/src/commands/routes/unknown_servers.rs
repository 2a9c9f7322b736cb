//! Serving processes that close a connection before the first packet, so their routes are unknown.

use gapless_agent::folder::Folder;
use gapless_transport::peer_process::{PeerCredentials, PeerProcess};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, recv, socket_with};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

/// Others wait for a hello.
const CLOSES_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
const SOCKETS_MAX: usize = 64;

/// Skips processes that cannot be tried; the regular request reports their errors.
pub(super) fn closed(directory: &Path) -> Vec<String> {
    let Ok(folder) = Folder::open(directory) else { return Vec::new() };
    // A long path does not fit a socket's address.
    let folder_path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let sockets = names.filter(|name| name.starts_with("copy-") && name.ends_with(".sock"));
    let closed = sockets.take(SOCKETS_MAX).filter_map(|name| who_closes(&format!("{folder_path}/{name}")));
    let mut found: Vec<String> = closed.map(reason).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// `None`: the process has no id in this namespace.
fn reason(process: Option<PeerProcess>) -> String {
    let which = process.map_or_else(|| "a process".to_owned(), |process| format!("process {}", process.id()));
    match process {
        Some(process) if !process.is_of_other_namespace() => {
            format!("{which} serves and lets nobody in: it may have no descriptors left, or too many connections")
        }
        _ => format!(
            "{which} of another process namespace, as of another container, serves here: such processes do not call each other"
        ),
    }
}

fn who_closes(path: &str) -> Option<Option<PeerProcess>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    connect(&socket, &SocketAddrUnix::new(path).ok()?).ok()?;
    let process = PeerCredentials::of(&socket).ok()?.process;
    poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&CLOSES_WITHIN)).ok()?;
    // A serving process never sends first.
    let is_closed = recv(&socket, &mut [0_u8; 1][..], RecvFlags::DONTWAIT).err() != Some(Errno::AGAIN);
    is_closed.then_some(process)
}
