//! Topics of one run, and their removal from a broker that outlives it.

use super::failed;
use gapless_kafka::client::{BrokerConnection, BrokerErrorKind, Topics};
use gapless_kafka::record::names;
use gapless_measure::Result;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(10);

/// Unique to the run.
#[derive(Clone, Debug)]
pub struct RunTopics {
    prefix: String,
}

impl Default for RunTopics {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { prefix: format!("gapless-bench-{}-{:x}", std::process::id(), now.as_millis()) }
    }
}

impl RunTopics {
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn bare(&self) -> [String; 2] {
        ["requests", "replies"].map(|what| format!("{}.bare.{what}", self.prefix))
    }

    /// Clients append `.requests` and `.replies`.
    pub fn java(&self) -> String {
        format!("{}.java", self.prefix)
    }

    pub fn all(&self, bridges: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = bridges.iter().map(|bridge| names::inbox(&self.prefix, bridge)).collect();
        all.push(names::presence(&self.prefix));
        all.extend(self.bare());
        all.extend(["requests", "replies"].map(|what| format!("{}.{what}", self.java())));
        all
    }
}

/// Removes topics when dropped; drop it after their clients.
pub struct TopicRemoval {
    connection: BrokerConnection,
    names: Vec<String>,
}

impl TopicRemoval {
    /// The topics need not exist.
    pub fn new(brokers: &str, names: Vec<String>) -> Self {
        Self { connection: BrokerConnection::new(brokers, "gapless-bench"), names }
    }

    fn remove(&self) -> Result<()> {
        let topics = Topics::connect(&self.connection, PATIENCE).map_err(failed)?;
        let mut first = Ok(());
        for name in &self.names {
            match topics.remove(name, PATIENCE) {
                Err(error) if error.kind != BrokerErrorKind::UnknownTopic => first = first.and(Err(failed(error))),
                _ => {}
            }
        }
        first
    }
}

impl Drop for TopicRemoval {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            // A closed stderr is no error here.
            let _ = writeln!(std::io::stderr(), "warning: topics {} are left: {error}", self.names.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_the_prefix_of_the_run() {
        let topics = RunTopics::default();
        let all = topics.all(&["near", "far"]);
        assert_eq!(all.len(), 7);
        assert!(all.iter().all(|name| name.starts_with(topics.prefix()) && names::is_topic(name)), "{all:?}");
        assert!(topics.bare().iter().all(|name| all.contains(name)));
        assert!(names::is_prefix(topics.prefix()));
    }
}
