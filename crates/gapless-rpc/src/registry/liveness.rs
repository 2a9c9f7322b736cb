//! [`Liveness`]: which serving processes of a domain answer. Asked on connections of its own, so the answer does not
//! depend on the asking process's time in the domain.

use super::connection::{BUFFER_BYTES, PeerConnection, ReceiveResult};
use super::directory::{DomainDirectory, InstanceId};
use super::instance_files;
use super::packets::{Hello, Packet, PeerRole};
use super::peer;
use crate::registry::error::RegistryError;
use gapless_agent::monotonic::monotonic_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WITHOUT_SOCKET_PAUSE: Duration = Duration::from_millis(10);

/// Serving processes of a domain, by process id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    /// Sent their hello.
    pub answering: Vec<u32>,
    /// Alive, but sent nothing in time.
    pub silent: Vec<u32>,
}

impl Liveness {
    /// Blocks up to `timeout` for all serving processes of the directory except `own`.
    ///
    /// # Errors
    /// A directory that cannot be listed; a process or a machine without descriptors.
    pub fn ask(directory: &DomainDirectory, own: Option<InstanceId>, timeout: Duration) -> Result<Self, RegistryError> {
        let until = Instant::now() + timeout;
        let process_name = "asks who answers".to_owned();
        let hello =
            Hello { role: PeerRole::Caller, process_id: std::process::id(), started_ns: monotonic_ns(), process_name };
        let hello = Packet::Hello(hello).encode();
        let hello: Arc<[u8]> = hello.map_err(|reason| RegistryError::Option { option: "process name", reason })?.into();
        let files = directory.list()?.into_iter();
        let mut unasked: BTreeSet<InstanceId> = files.map(|(id, _)| id).filter(|id| Some(*id) != own).collect();
        let (mut asked, mut full): (Vec<(u32, PeerConnection)>, Vec<u32>) = Default::default();
        let (mut answers, mut buffer) = (Self::default(), vec![0; BUFFER_BYTES]);
        loop {
            for id in std::mem::take(&mut unasked) {
                let mut connection = match PeerConnection::connect(directory, id) {
                    Ok(connection) => connection,
                    // The socket's backlog is full; the lock names the process.
                    Err(Errno::AGAIN) => {
                        let holder =
                            instance_files::holder(directory, id).filter(|holder| holder.is_of_this_namespace());
                        full.extend(holder.map(|holder| holder.process_id));
                        continue;
                    }
                    // A starting process has its socket soon.
                    Err(Errno::NOENT) => {
                        match instance_files::without_socket(directory, id) {
                            Some(process_id) if Instant::now() >= until => full.push(process_id),
                            Some(_) => drop(unasked.insert(id)),
                            None => {}
                        }
                        continue;
                    }
                    Err(errno) => {
                        let error = RegistryError::system("asking who serves")(errno);
                        if peer::lacks_descriptors(&error) {
                            return Err(error);
                        }
                        continue;
                    }
                };
                match peer::identify(&connection) {
                    Ok((identity, _pidfd)) if connection.send(Arc::clone(&hello), Vec::new()).is_ok() => {
                        asked.push((identity.process_id, connection));
                    }
                    Err(error) if peer::lacks_descriptors(&error) => return Err(error),
                    Ok(_) | Err(_) => {}
                }
            }
            asked.retain(|(process_id, connection)| {
                // Reads everything, so that the peer sees no end while it sends.
                loop {
                    match connection.receive(&mut buffer) {
                        Ok(ReceiveResult::Nothing) => return true,
                        Ok(ReceiveResult::Packet(packet, _)) if packet != Packet::Listed => {}
                        Ok(
                            ReceiveResult::Packet(..)
                            | ReceiveResult::WithoutDescriptors(_)
                            | ReceiveResult::OtherVersion(_),
                        )
                        | Err(_) => {
                            answers.answering.push(*process_id);
                            return false;
                        }
                        Ok(ReceiveResult::End) => return false,
                    }
                }
            });
            let mut left = until.saturating_duration_since(Instant::now());
            if unasked.is_empty() && (asked.is_empty() || left.is_zero()) {
                break;
            }
            let mut waiting: Vec<_> =
                asked.iter().map(|(_, connection)| PollFd::new(connection, PollFlags::IN)).collect();
            if !unasked.is_empty() {
                left = left.min(WITHOUT_SOCKET_PAUSE);
            }
            let time = Timespec::try_from(left.max(Duration::from_millis(1))).ok();
            // A signal ends the wait early; the loop then looks once more.
            let _ = poll(&mut waiting, time.as_ref());
        }
        answers.silent = asked.into_iter().map(|(process_id, _)| process_id).chain(full).collect();
        answers.answering.sort_unstable();
        answers.silent.sort_unstable();
        Ok(answers)
    }
}
