//! The benchmark that started this process.

use super::write_line;
use crate::{BenchError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Behaviour when the benchmark has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// Ends at once, in the middle of its work.
    Exit,
    /// Ends in order when it next receives or looks.
    Notice,
}

/// A sleeping thread listens, so that a spinning one need not read.
pub struct Parent {
    benchmark: &'static str,
    requests: Receiver<String>,
    has_ended: Arc<AtomicBool>,
}

impl Parent {
    /// Call it before this thread is pinned: the listening thread inherits the mask.
    pub fn listen(benchmark: &'static str, orphan_policy: OrphanPolicy) -> Result<Self> {
        let (sender, requests) = channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended_error = Arc::clone(&has_ended);
        let listen = move || {
            let lines = std::io::stdin().lock().lines().map_while(std::result::Result::ok);
            lines.map(|line| sender.send(line)).take_while(std::result::Result::is_ok).for_each(drop);
            if orphan_policy == OrphanPolicy::Exit {
                std::process::exit(1);
            }
            ended_error.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new()
            .name("listen".to_owned())
            .spawn(listen)
            .map_err(|source| BenchError::system("start a thread", source))?;
        Ok(Self { benchmark, requests, has_ended })
    }

    pub fn send(&self, value: &impl Serialize) -> Result<()> {
        let written = write_line(std::io::stdout().lock(), value);
        written.map_err(|source| BenchError::system("answer the benchmark", source))
    }

    /// `None` when the benchmark has gone.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.requests.recv().ok().map(|line| Ok(serde_json::from_str(&line)?)).transpose()
    }

    /// Does not wait.
    pub fn try_receive<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        match self.requests.try_recv() {
            Ok(line) => Ok(Some(serde_json::from_str(&line)?)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.ended_error()),
        }
    }

    pub fn check_running(&self) -> Result<()> {
        if self.has_ended.load(Ordering::Relaxed) { Err(self.ended_error()) } else { Ok(()) }
    }

    pub fn ended_error(&self) -> BenchError {
        BenchError::measurement(self.benchmark, "the benchmark that this process works for has gone")
    }
}
