//! A client that may be killed at any moment: each of its deposits is booked once, and it hears of each.
//!
//! ```sh
//! surviving_client SOCKET HOME [AMOUNT]
//! ```
//!
//! Run it again after it was killed, with or without another amount. The guide `connecting-clients` explains it.

use gapless::client::CommandNumber;
use gapless::prelude::*;
use std::{error::Error, fs, io, path::Path};

const DEPOSIT: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(10);

/// Atomic: a kill leaves the old file or the new one.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path.with_extension("new"), bytes)?;
    fs::rename(path.with_extension("new"), path)
}

/// An unreadable file does not start a new session: the command in the outbox may have been sent in the old one.
fn saved_or_new(session: &Path, outbox: &Path) -> Result<SavedSession, Box<dyn Error>> {
    match fs::read(session) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !outbox.exists() => {
            Ok(SavedSession::new(random_token(), 16))
        }
        found => Ok(SavedSession::from_bytes(&found?)?),
    }
}

fn run(socket: &Path, home: &Path, mut amount: Option<u64>) -> Result<(), Box<dyn Error>> {
    let (session, outbox) = (home.join("session"), home.join("outbox"));
    let saved = saved_or_new(&session, &outbox)?;
    keep(&session, &saved.to_bytes())?; // Before the stream hears of it.
    let mut client = PolledClient::connect(socket, ClientOptions::default())?;
    let key = client.resume_session(&saved)?; // An error: what became of the outbox nobody knows. Settle it by hand.
    loop {
        keep(&session, &client.saved_session(key).ok_or("it is open")?.to_bytes())?; // With what it has seen so far.
        if !outbox.exists() {
            let Some(amount) = amount.take() else { return Ok(()) };
            let number = client.number_for(key, 8).ok_or("it is open")?;
            keep(&outbox, &[&number.to_bytes()[..], &amount.to_le_bytes()].concat())?; // Before it is sent.
        }
        let note = fs::read(&outbox)?;
        let number = CommandNumber::from_bytes(note[..16].try_into()?);
        client.send_as(key, number, DEPOSIT, &note[16..])?; // Has its effect once, however often it is sent.
        match client.outcome(key, number.session_seq, PATIENCE) {
            Ok(Outcome::Done(reply)) => println!("done: {:?}", reply.payload),
            Ok(Outcome::Refused { reason, .. }) => println!("refused: {reason}"),
            Ok(Outcome::ReplyTooLong { .. }) => println!("done; its reply is longer than any may be"),
            Ok(Outcome::NoLongerKept { .. }) => println!("done or refused; its reply is gone"),
            Ok(Outcome::NotYetDone) => continue,
            Err(ClientError::OutcomeUnknown { .. }) if client.reconnect().is_ok() => continue,
            other => return Err(format!("{other:?}").into()), // The outbox keeps it for the next run.
        }
        fs::remove_file(&outbox)?;
        // Notices: some may come once more to the next life; their numbers say which.
        client.poll(64, |incoming| println!("{incoming:?}")).or_else(|_| client.reconnect().map(|()| 0))?;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, home, amount @ ..] = arguments.as_slice() else {
        return Err("SOCKET HOME [AMOUNT] are expected".into());
    };
    run(Path::new(socket), Path::new(home), amount.first().map(|amount| amount.parse()).transpose()?)
}
