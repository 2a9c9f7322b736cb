//! The status of bridges as text.

use crate::commands::routes::text::{cell, table};
use crate::commands::supervisor::text::duration;
use crate::printable::escaped;
use gapless_kafka::counters::Counters;
use gapless_kafka::peers::CallLoad;
use gapless_kafka::status::{BridgeStatus, BrokerStatus};

pub(super) fn in_text<'a>(statuses: impl Iterator<Item = &'a BridgeStatus>) -> String {
    statuses.map(one_in_text).collect::<Vec<_>>().join("\n")
}

fn one_in_text(status: &BridgeStatus) -> String {
    let BridgeStatus { name, prefix, incarnation, protocol, machine, process_id, running_ms, phase, .. } = status;
    let running = duration(*running_ms);
    let mut text = format!(
        "bridge {} is {}: started {running} ago, prefix {}, process {process_id} on {}, incarnation {incarnation:016x}, protocol {protocol}\n",
        cell(name),
        phase.as_str(),
        escaped(prefix),
        cell(machine),
    );
    text += &broker(&status.broker);
    if !status.peers.is_empty() {
        text += &format!("\n{}", peers(status));
    }
    for refused in &status.refused_peers {
        text += &format!("bridge {} is not used: {}\n", cell(&refused.name), escaped(&refused.reason));
    }
    if !status.offered.is_empty() {
        text += &format!("\n{}", offered(status));
    }
    if status.routes_left_out > 0 {
        text += &format!("{} further routes have no room in the lease\n", status.routes_left_out);
    }
    if !status.taken.is_empty() {
        text += &format!("\n{}", taken(status));
    }
    text += &counters(&status.counters);
    text
}

fn broker(broker: &BrokerStatus) -> String {
    let since = broker.since_ms.map(duration);
    let state = match (broker.is_connected, since) {
        (true, Some(since)) => format!("connected for {since}"),
        (true, None) => "connected".to_owned(),
        (false, Some(since)) => format!("lost {since} ago"),
        (false, None) => "not connected yet".to_owned(),
    };
    let reason = broker.reason.as_ref().map(|reason| format!(": {}", escaped(reason))).unwrap_or_default();
    let refused = broker.refused.as_ref().map(|refused| format!("last refusal of the broker: {}\n", escaped(refused)));
    format!("broker {}: {state}{reason}\n{}", escaped(&broker.brokers.join(",")), refused.unwrap_or_default())
}

fn peers(status: &BridgeStatus) -> String {
    let head = ["PEER", "MACHINE", "STATE", "HEARD", "ROUTES", "TO IT", "FROM IT", "PROTOCOL", "INCARNATION"];
    let rows = status.peers.iter().map(|peer| {
        [
            cell(&peer.name),
            cell(&peer.machine),
            peer.state.as_str().to_owned(),
            duration(peer.heard_ms),
            peer.routes.to_string(),
            load(peer.calls_to),
            load(peer.calls_from),
            peer.protocol.to_string(),
            format!("{:016x}", peer.incarnation),
        ]
    });
    table(&std::iter::once(head.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
}

fn offered(status: &BridgeStatus) -> String {
    let head = ["OFFERED", "INSTANCES", "CALLS"].map(str::to_owned);
    let rows = status.offered.iter();
    let rows = rows.map(|route| [escaped(&route.route), route.instances.to_string(), route.calls.to_string()]);
    table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn taken(status: &BridgeStatus) -> String {
    let head = ["TAKEN", "INSTANCES", "BRIDGES"].map(str::to_owned);
    let rows = status.taken.iter().map(|route| {
        let bridges = route.bridges.iter().map(|bridge| cell(bridge)).collect::<Vec<_>>().join(", ");
        let refused = if route.is_served { "" } else { ", not served here" };
        [escaped(&route.route), route.instances.to_string(), format!("{bridges}{refused}")]
    });
    table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn load(load: CallLoad) -> String {
    match load.bytes {
        bytes @ 0..1024 => format!("{} ({bytes} B)", load.calls),
        bytes @ 1024..1_048_576 => format!("{} ({} KiB)", load.calls, bytes >> 10),
        bytes => format!("{} ({} MiB)", load.calls, bytes >> 20),
    }
}

fn counters(counters: &Counters) -> String {
    let values = serde_json::to_value(counters).unwrap_or_default();
    let counted = values.as_object().into_iter().flatten().filter(|(_, count)| count.as_u64() != Some(0));
    let counted: Vec<_> = counted.map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
    if counted.is_empty() { String::new() } else { format!("\nignored so far: {}\n", counted.join(", ")) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use gapless_kafka::peers::PeerState;
    use gapless_kafka::status::{BridgePhase, OfferedRouteStatus, PeerStatus, RefusedPeer, TakenRouteStatus};

    pub(in crate::commands::bridge) fn status() -> BridgeStatus {
        BridgeStatus {
            name: "berlin".to_owned(),
            prefix: "gapless".to_owned(),
            incarnation: 7,
            protocol: 1,
            machine: "m1".to_owned(),
            process_id: 4711,
            running_ms: 7_380_000,
            phase: BridgePhase::Serving,
            broker: BrokerStatus {
                brokers: vec!["a:1".to_owned(), "b:2".to_owned()],
                is_connected: true,
                since_ms: Some(61_000),
                reason: None,
                refused: None,
            },
            peers: vec![PeerStatus {
                name: "tokyo".to_owned(),
                machine: "m2\u{1b}[2J".to_owned(),
                incarnation: 8,
                protocol: 1,
                state: PeerState::Alive,
                heard_ms: 400,
                routes: 4,
                calls_to: CallLoad { calls: 3, bytes: 2 << 20 },
                calls_from: CallLoad::default(),
            }],
            refused_peers: vec![RefusedPeer { name: "paris".to_owned(), reason: "it speaks version 2".to_owned() }],
            offered: vec![OfferedRouteStatus { route: "shop/price".to_owned(), instances: 2, calls: 1 }],
            routes_left_out: 0,
            taken: vec![TakenRouteStatus {
                route: "bank/pay".to_owned(),
                instances: 3,
                bridges: vec!["tokyo".to_owned()],
                is_served: true,
            }],
            counters: Counters { late_replies: 2, ..Counters::default() },
        }
    }

    #[test]
    fn status_is_one_page() {
        let expected = "\
bridge berlin is serving: started 2 h 3 min ago, prefix gapless, process 4711 on m1, incarnation 0000000000000007, protocol 1
broker a:1,b:2: connected for 1 min 1 s

PEER   MACHINE      STATE  HEARD  ROUTES  TO IT      FROM IT  PROTOCOL  INCARNATION
tokyo  m2\\u{1b}[2J  alive  0 s    4       3 (2 MiB)  0 (0 B)  1         0000000000000008
bridge paris is not used: it speaks version 2

OFFERED     INSTANCES  CALLS
shop/price  2          1

TAKEN     INSTANCES  BRIDGES
bank/pay  3          tokyo

ignored so far: late replies 2
";
        assert_eq!(in_text([status()].iter()), expected);
    }

    #[test]
    fn missing_broker_shows_reason() {
        let lost = BrokerStatus {
            brokers: vec!["a:1".to_owned()],
            since_ms: Some(5_000),
            reason: Some("refused".to_owned()),
            ..BrokerStatus::default()
        };
        assert_eq!(broker(&lost), "broker a:1: lost 5 s ago: refused\n");
        let never = BrokerStatus { since_ms: None, reason: None, refused: Some("no\u{7}".to_owned()), ..lost };
        assert_eq!(broker(&never), "broker a:1: not connected yet\nlast refusal of the broker: no\\u{7}\n");
    }
}
