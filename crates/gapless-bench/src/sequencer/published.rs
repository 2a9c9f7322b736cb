//! Published figures of CoralSequencer, to be printed beside ours: loopback UDP on one machine, two processes for a
//! latency, three nodes for a throughput. They are facts about other machines, never a basis for "x times faster".

/// Where the latencies come from.
pub const LATENCY_SOURCE: &str =
    "published by CoralSequencer: UDP over loopback, 1,000,000 messages, desktop at 6.00 GHz";
/// Where the rates come from.
pub const RATE_SOURCE: &str = "published by CoralSequencer: three nodes on one server at 3.7 GHz; messages a second \
through the sequencer, and in parentheses of each node, which do not add up";

/// A latency over UDP, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedLatency {
    /// Bytes of the message.
    pub payload_bytes: u64,
    pub mean_ns: u64,
    /// Least, average, and the greatest of all and within each slice, where they are published.
    pub rest: Option<PublishedSlices>,
}

/// The rest of a published latency, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSlices {
    pub min_ns: u64,
    pub max_ns: u64,
    /// The average within each of [`super::slices::PERCENTS`]; `None` where it is not known here.
    pub average_ns: [Option<u64>; 6],
    /// The greatest value within each of [`super::slices::PERCENTS`].
    pub greatest_ns: [u64; 6],
}

/// All published latencies.
pub const LATENCIES: [PublishedLatency; 2] = [
    PublishedLatency { payload_bytes: 256, mean_ns: 4_700, rest: None },
    PublishedLatency {
        payload_bytes: 1024,
        mean_ns: 3_379,
        rest: Some(PublishedSlices {
            min_ns: 2_717,
            max_ns: 73_174,
            average_ns: [Some(3_236), Some(3_286), Some(3_359), None, None, None],
            greatest_ns: [3_428, 3_775, 5_155, 5_547, 5_719, 11_311],
        }),
    },
];

/// A throughput of three nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedRate {
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Whether a packet held several messages.
    pub batch: bool,
    /// Messages a second through the sequencer.
    pub sequencer_per_s: u64,
    /// Messages a second of a node.
    pub node_per_s: u64,
}

const fn published(payload_bytes: u64, batch: bool, sequencer_per_s: u64, node_per_s: u64) -> PublishedRate {
    PublishedRate { payload_bytes, batch, sequencer_per_s, node_per_s }
}

/// All published throughputs.
pub const RATES: [PublishedRate; 4] = [
    published(256, true, 1_116_166, 470_483),
    published(64, true, 2_330_160, 1_641_239),
    published(256, false, 786_497, 275_861),
    published(1400, false, 328_025, 111_119),
];

/// The least time of a packet of 256 B from network card to network card.
pub const WIRE: &str = "between machines a packet of 256 B takes at least 382 ns from network card to network card at \
10 Gb/s, 3.82 µs at 1 Gb/s: nothing here has crossed a wire";

/// The published latency of messages of this size.
pub fn latency_of(payload_bytes: u64) -> Option<&'static PublishedLatency> {
    LATENCIES.iter().find(|row| row.payload_bytes == payload_bytes)
}

/// The published throughput of messages of this size.
pub fn rate_of(payload_bytes: u64, batch: bool) -> Option<&'static PublishedRate> {
    RATES.iter().find(|row| row.payload_bytes == payload_bytes && row.batch == batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(rate_of(64, true).unwrap().sequencer_per_s, 2_330_160);
        assert_eq!((rate_of(1312, false), rate_of(64, false)), (None, None));
        assert_eq!(latency_of(256).unwrap().rest, None);
        let slices = latency_of(1024).unwrap().rest.unwrap();
        assert_eq!(slices.average_ns[0], Some(3_236));
        assert!(slices.greatest_ns.is_sorted() && slices.max_ns > slices.greatest_ns[5]);
    }
}
