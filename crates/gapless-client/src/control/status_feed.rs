//! `StatusFeed`: repeated reading of the nodes connected to a stream of this machine: their state, and their rates
//! between two reads.

use super::Controller;
use crate::ClientError;
use crate::control_messages::nodes::{NodeRow, StreamState};
use gapless_log::StreamIdentity;
use rustc_hash::FxHashMap;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct NodeReading {
    pub row: NodeRow,
    /// Frames read a second; `None` at the first read, without a new report, or if the node reads nothing.
    pub read_per_s: Option<f64>,
    /// Frames published a second.
    pub published_per_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusReading {
    pub identity: StreamIdentity,
    pub released_sequence: u64,
    /// Sequencer's or relay's process.
    pub process_id: u64,
    pub stream: StreamState,
    /// Connected nodes, ascending: at most `nodes_max` of each network and 4,096 of this machine.
    pub nodes: Vec<NodeReading>,
}

/// Reads the status of a stream's nodes.
///
/// ```no_run
/// # mod gapless { pub mod stream { pub use gapless_client::control::{Controller, StatusFeed}; } }
/// use gapless::stream::{Controller, StatusFeed};
/// use std::time::Duration;
/// let mut feed = StatusFeed::new(Controller::new("/var/lib/gapless/orders"));
/// loop {
///     for node in feed.read(Duration::from_secs(5))?.nodes {
///         println!("{} is {} frames behind", node.row.name, node.row.lag_frames);
///     }
///     std::thread::sleep(Duration::from_secs(1));
/// }
/// # Ok::<(), gapless_client::ClientError>(())
/// ```
pub struct StatusFeed {
    controller: Controller,
    process_id: u64,
    before: FxHashMap<u32, NodeRow>,
}

impl StatusFeed {
    #[must_use]
    pub fn new(controller: Controller) -> Self {
        Self { controller, process_id: 0, before: FxHashMap::default() }
    }

    /// Current nodes, with their rates since the last read.
    ///
    /// # Errors
    /// As for [`Controller::nodes`].
    pub fn read(&mut self, timeout: Duration) -> Result<StatusReading, ClientError> {
        let answer = self.controller.nodes(timeout)?;
        if answer.process_id != self.process_id {
            // Connection numbers of another process are unrelated.
            self.process_id = answer.process_id;
            self.before.clear();
        }
        let before = std::mem::take(&mut self.before);
        let reading = |row: NodeRow| {
            let (read_per_s, published_per_s) = match before.get(&row.connection) {
                Some(old) => rates(old, &row),
                None => (None, None),
            };
            NodeReading { row, read_per_s, published_per_s }
        };
        let nodes: Vec<_> = answer.rows.into_iter().map(reading).collect();
        for NodeReading { row, .. } in &nodes {
            self.before.insert(row.connection, row.clone());
        }
        let (identity, released_sequence, process_id) = (answer.identity, answer.released_sequence, answer.process_id);
        Ok(StatusReading { identity, released_sequence, process_id, stream: answer.stream, nodes })
    }
}

fn rates(before: &NodeRow, now: &NodeRow) -> (Option<f64>, Option<f64>) {
    let Some(passed_ns) = now.noted_ns.checked_sub(before.noted_ns).filter(|passed_ns| *passed_ns > 0) else {
        return (None, None);
    };
    let per_s = |before: u64, now: u64| now.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
    let reads = before.position > 0 && now.position > 0;
    (reads.then(|| per_s(before.position, now.position)), Some(per_s(before.frames_published, now.frames_published)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_transport::transport::Transport;

    #[test]
    fn rates_use_time_between_reports() {
        let row = |position, frames_published, noted_ns| NodeRow {
            connection: 1,
            name: String::new(),
            process_id: None,
            address: None,
            transport: Transport::Tcp,
            is_live: None,
            position,
            lag_frames: 0,
            frames_requested: 0,
            frames_resent: 0,
            frames_published,
            frames_dropped: 0,
            in_flight: 0,
            noted_ns,
        };
        let before = row(100, 10, 1_000_000_000);
        assert_eq!(rates(&before, &row(600, 10, 1_500_000_000)), (Some(1000.0), Some(0.0)));
        assert_eq!(rates(&before, &row(100, 20, 2_000_000_000)), (Some(0.0), Some(10.0)));
        assert_eq!(rates(&before, &row(600, 10, 1_000_000_000)), (None, None), "no report since");
        assert_eq!(rates(&before, &row(600, 10, 0)), (None, None), "the node has reconnected");
        assert_eq!(rates(&row(0, 0, 1), &row(0, 5, 1_000_000_001)), (None, Some(5.0)), "it reads nothing");
    }
}
