//! [`DurableClient`]: a client whose commands outlive its process. They are in a file before they are sent.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`DurableClient`] |
//! | `kept` | [`Kept`]: one kept command, and the future of its outcome |
//! | `opening` | the session of an earlier life, and the outcomes of its commands |
//! | `hooks` | records made by the connection: numbers and outcomes |
//! | `log` | kept commands in one file |
//! | `log_state` | the file, and what its records add up to |
//! | `command` | one kept command, and the tasks that wait for it |
//! | `record` | bytes of the file |

mod command;
mod hooks;
mod kept;
mod log;
mod log_state;
mod opening;
mod record;

pub use kept::Kept;

use super::answer::encode;
use super::call_error::CallError;
use super::channel::{Channel, lock};
use super::{Client, Connect};
use crate::ClientError;
use crate::polled::MessageType;
use command::KeptCommand;
use gapless_message::Request;
use hooks::ClientLog;
use log::{CommandLog, NotKept};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A log is waited for this long, until the process that has used it has ended.
const LOCK_WITHIN: Duration = Duration::from_secs(2);

/// A client whose commands survive the death of its process: each takes effect exactly once, and its outcome is heard
/// at least once. A command is kept in a file of a directory until [`Kept::forget`]; the next process that opens the
/// directory goes on with it. Clones share the file and the connection.
///
/// The file survives what the operating system survives, as the tier `journal` does, and not a power failure. It has
/// the token of the client's session: only its user may read it.
///
/// ```no_run
/// use gapless_client::{CallError, Client};
/// use gapless_message::Message;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(reply = u64, refusal = String)]
/// struct Deposit { amount: u64 }
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect("data/").durable("home/")?;
/// client.keep(Deposit { amount: 10 })?;
/// for kept in client.kept::<Deposit>() {
///     match kept.wait() {
///         Ok(balance) => println!("the balance is {balance}"),
///         Err(CallError::Refused(reason)) => println!("refused: {reason}"),
///         Err(other) => return Err(other.into()),
///     }
///     kept.forget()?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DurableClient(Arc<Durable>);

struct Durable {
    client: Client,
    log: Arc<ClientLog>,
    /// Held by the thread that keeps a command, so that commands are queued in the order of the log.
    keeping: Mutex<()>,
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.client.channel().leave_pending();
    }
}

impl fmt::Debug for DurableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableClient").field("kept", &self.kept_count()).finish_non_exhaustive()
    }
}

impl Connect {
    /// Connects on this thread, and keeps commands in `directory`, which is created if it is missing; one client uses it
    /// at a time. Blocks until the outcomes of the commands of an earlier life are known, at most for the limit of
    /// connecting for each.
    ///
    /// # Errors
    /// As for [`Connect::blocking`]; and
    /// - [`ClientError::Outbox`]: the directory is in use or cannot be written, its file is damaged, or its commands
    ///   belong to another stream or to history that the stream lacks;
    /// - [`ClientError::OutcomeUnknown`]: the service has not handled a command yet. Open the directory again;
    /// - [`ClientError::Option`]: [`Connect::sessions`] other than 1.
    ///
    /// No error loses a command.
    pub fn durable(self, directory: impl AsRef<Path>) -> Result<DurableClient, ClientError> {
        let options = self.checked_options()?;
        if options.sessions != 1 {
            let reason = format!("a durable client has one session, not {}", options.sessions);
            return Err(ClientError::Option { option: "sessions", reason });
        }
        let log = CommandLog::open(directory.as_ref(), LOCK_WITHIN)?;
        let within = self.connecting_within();
        let mut polled = self.polled()?;
        let key = opening::resume(&mut polled, &log, within)?;
        let log = Arc::new(ClientLog::new(log));
        let channel = Arc::new(Channel::new(polled, options)?);
        channel.connection.lock().0.adopt(key, Arc::<ClientLog>::clone(&log));
        for command in log.log.commands().iter().filter(|command| !command.is_settled()) {
            channel.queue_again(&hooks::sent_command(&log, command));
        }
        // The helper sends and receives as long as there is a durable client.
        channel.enter_pending();
        channel.start_helper();
        let client = Client::of(channel);
        client.channel().turn();
        Ok(DurableClient(Arc::new(Durable { client, log, keeping: Mutex::default() })))
    }
}

impl DurableClient {
    /// Keeps a command, and sends it as soon as there is a service and room. Kept commands are sent in their order. One
    /// of which the disk refuses the number waits for the next life; others go on.
    ///
    /// # Errors
    /// Nothing is kept, and there is no effect: [`CallError::Invalid`] for a command that cannot be encoded;
    /// [`CallError::Busy`] if as many are kept as may be (`waiting_max` and [`WAITING_BYTES_MAX`], settled ones
    /// included); [`CallError::NotSent`] if the disk refuses it.
    ///
    /// [`WAITING_BYTES_MAX`]: super::WAITING_BYTES_MAX
    pub fn keep<R: Request>(&self, request: R) -> Result<Kept<R>, CallError<R::Refusal>> {
        let payload = encode(&request).map_err(|reason| CallError::Invalid { reason })?;
        let Durable { client, log, keeping } = &*self.0;
        let channel = client.channel();
        let guard = lock(keeping);
        let command = log.log.keep(MessageType::typed::<R>(), payload, channel.options.waiting_max);
        let command = command.map_err(|error| match error {
            NotKept::Full { kept } => CallError::Busy { waiting: kept },
            NotKept::Failed(error) => CallError::NotSent { reason: error.to_string() },
        })?;
        channel.queue_again(&hooks::sent_command(log, &command));
        drop(guard);
        channel.start_helper();
        channel.turn();
        Ok(Kept::new(self.clone(), command))
    }

    /// Kept commands of this type, of this life and of earlier ones, oldest first.
    #[must_use]
    pub fn kept<R: Request>(&self) -> Vec<Kept<R>> {
        let commands = self.0.log.log.commands().into_iter();
        let of_type = commands.filter(|command| command.message == MessageType::typed::<R>());
        of_type.map(|command| Kept::new(self.clone(), command)).collect()
    }

    /// Number of kept commands of all types.
    #[must_use]
    pub fn kept_count(&self) -> usize {
        self.0.log.log.count()
    }

    /// Client of the same connection, for queries, notices and calls that are not kept.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    fn forget(&self, command: &KeptCommand) -> Result<(), ClientError> {
        self.0.log.log.forget(command.id)
    }

    fn within(&self) -> Duration {
        self.0.client.channel().options.within
    }

    fn late_reason(&self, given: Duration) -> String {
        self.0.client.channel().outbox.late_reason(given)
    }

    fn has_helper(&self) -> bool {
        let channel = self.0.client.channel();
        let has_helper = channel.start_helper();
        if !has_helper {
            channel.turn();
        }
        has_helper
    }
}
