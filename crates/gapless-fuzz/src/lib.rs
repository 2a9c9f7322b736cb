//! Hostile bytes for every decoder of foreign bytes: one function for each, which feeds the bytes in and asserts the
//! properties that hold for any input. Called by the targets under `fuzz/` and by this crate's tests.
//!
//! | module | decoders |
//! |---|---|
//! | [`wire`] | frames, payloads of control frames, the handshake |
//! | [`feeds`] | packets of MoldUDP64 and SoupBinTCP |
//! | [`mappings`] | a ring and a window as an attacker left them, a counters file |
//! | [`services`] | snapshots, the record of dead letters, a stream replayed into a service |
//! | [`journals`] | segment files: read, verified, recovered |
//! | [`clusters`] | messages between a cluster's members, snapshot transfers, and consensus' records in a journal |
//! | [`transactions`] | transactions of a state-replicated service |
//! | [`commands`] | commands to a command bus, and the events of its transactions |
//! | [`stores`] | changes and snapshots of a store |
//! | [`connections`] | a publisher's ring on its way into the stream, a service's ring on its way to a client |
//! | [`links`] | messages and handshakes between the members of a cluster |
//! | [`calls`] | requests and replies of calls, their headers, refusals, packets of a domain, call tables |
//! | [`bridges`] | records, leases and outcomes of bridges over Kafka |
//! | [`messages`] | SBE and protobuf payloads of every generated test schema |
//! | [`schemas`] | schema files |
//! | [`workbooks`] | Excel workbooks |
//! | [`streams`] | requests of a stream's control, and its file |
//! | [`input`] | splitting of input bytes, and repair of checksums |
//!
//! A target panics exactly when a property is broken. It depends on its bytes alone, so the same bytes give the same
//! outcome.

#![forbid(unsafe_code)]

pub mod bridges;
pub mod calls;
pub mod clusters;
pub mod commands;
pub mod connections;
pub mod feeds;
pub mod input;
pub mod journals;
pub mod links;
pub mod mappings;
pub mod messages;
pub mod schemas;
pub mod services;
pub mod stores;
pub mod streams;
pub mod transactions;
pub mod wire;
pub mod workbooks;

pub type FuzzTarget = fn(&[u8]);

/// A target's name is also that of its file in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("frame", wire::frame),
    ("control", wire::control),
    ("handshake", wire::handshake),
    ("mold_packet", feeds::mold_packet),
    ("mold_request", feeds::mold_request),
    ("soup_server", feeds::soup_server),
    ("soup_client", feeds::soup_client),
    ("upstream_packet", streams::upstream_packet),
    ("stream_mark", streams::stream_mark),
    ("stream_control", streams::stream_control),
    ("sequencer_state", streams::sequencer_state),
    ("feed_receiver", streams::feed_receiver),
    ("ring", mappings::ring),
    ("window", mappings::window),
    ("counters", mappings::counters),
    ("journal_read", journals::read),
    ("journal_recovery", journals::recovery),
    ("snapshot", services::snapshot),
    ("dead_letters", services::dead_letters),
    ("replay", services::replay),
    ("consensus_message", clusters::message),
    ("consensus_record", clusters::record),
    ("snapshot_transfer", clusters::snapshot_transfer),
    ("cluster_history", clusters::history),
    ("store_changes", stores::changes),
    ("store_snapshot", stores::snapshot),
    ("transactions", transactions::transactions),
    ("command_envelope", commands::envelope),
    ("command_transaction", commands::transaction),
    ("ingress", connections::ingress),
    ("client", connections::client),
    ("cluster_link", links::cluster_link),
    ("cluster_handshake", links::cluster_handshake),
    ("cluster_beacon", links::cluster_beacon),
    ("call_message", calls::message),
    ("call_headers", calls::headers),
    ("call_packet", calls::packet),
    ("call_ended", calls::ended),
    ("call_refusal", calls::refusal),
    ("call_table", calls::call_table),
    ("bridge_records", bridges::records),
    ("bridge_json", bridges::json),
    ("sbe", messages::sbe),
    ("protobuf", messages::protobuf),
    ("schema", schemas::schema),
    ("workbook", workbooks::workbook),
];

/// Returns the target of this name.
///
/// # Panics
/// If the name is unknown.
#[must_use]
pub fn target(name: &str) -> FuzzTarget {
    let found = TARGETS.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no target is called {name:?}")).1
}
