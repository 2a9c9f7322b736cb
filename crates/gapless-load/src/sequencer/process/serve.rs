//! The sequencer's process: an event stream, until it is asked to stop.

use crate::Result;
use crate::child_process::Parent;
use crate::sequencer::failed;
use crate::sequencer::protocol::{
    PacketOptions, ProcessCost, SequencerAssignment, SequencerReady, SequencerRequest, StreamAddress, stream_failed,
};
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_journal::Zeroing;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::network::tcp_endpoints::FRAME_LENGTH_TCP;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::network::{Datagrams as _, Interface, Segmentation, UdpOptions, UdpSocket};
use gapless_wire::descriptor::FRAME_LENGTH_UDP;
use gapless_wire::mtu::Mtu;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A free port may be taken when it is opened.
const ATTEMPTS: u32 = 5;

pub fn run(assignment: &SequencerAssignment, parent: &Parent) -> Result<()> {
    let (stream, mut way) = start(assignment)?;
    let addresses = stream.tcp_addresses();
    match (&mut way, addresses) {
        (StreamAddress::Datagrams { rewind, .. }, addresses) => *rewind = addresses.map(|addresses| addresses.rewind),
        (StreamAddress::Tcp { command, rewind, .. }, Some(addresses)) => {
            (*command, *rewind) = (addresses.command, addresses.rewind)
        }
        _ => {}
    }
    parent.send(&SequencerReady { way, plan: stream.plan().to_string() })?;
    // Without a benchmark there are no more requests, and the stream stops in order.
    while let Some(request) = parent.receive()? {
        if let Some(failure) = stream.failure() {
            return Err(stream_failed(&failure));
        }
        match request {
            SequencerRequest::Cost => parent.send(&ProcessCost::of_this_process())?,
            SequencerRequest::Stop => {
                stream.stop().map_err(|error| stream_failed(&error))?;
                return parent.send(&ProcessCost::of_this_process());
            }
        }
    }
    stream.stop().map(|_| ()).map_err(|error| stream_failed(&error))
}

fn start(assignment: &SequencerAssignment) -> Result<(EventStream, StreamAddress)> {
    let mut attempt = 1;
    loop {
        let (options, way) = options(assignment)?;
        match EventStream::start(&options) {
            Ok(stream) => return Ok((stream, way)),
            Err(_) if assignment.packets.is_some() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(stream_failed(&error)),
        }
    }
}

fn options(assignment: &SequencerAssignment) -> Result<(EventStreamOptions, StreamAddress)> {
    let mut options = EventStreamOptions::in_directory(&assignment.directory);
    options.plan = match assignment.plan.as_str() {
        "min" => PlanKind::Min,
        "default" => PlanKind::Default,
        "max" => PlanKind::Max,
        other => return Err(failed(format!("min, default or max is expected as thread plan, not {other}"))),
    };
    // Excludes the file system's first touch of each page.
    options.persistence.segment_length_bytes = assignment.segment_bytes;
    options.persistence.first_segment_length_bytes = assignment.segment_bytes;
    options.persistence.zeroing = Zeroing::All;
    options.optimize_for = if assignment.for_throughput { OptimizeFor::Throughput } else { OptimizeFor::Latency };
    options.sequencer_cpus = assignment.cpu.and_then(|cpu| CpuMask::of(&[cpu]));
    options.tier = assignment.tier.parse().map_err(failed)?;
    let any = SocketAddr::new(LOOPBACK, 0);
    if assignment.tcp {
        options.frame_length_max = options.frame_length_max.min(FRAME_LENGTH_TCP);
        options.tcp = Some(TcpNetwork::new(any, any));
        let options = with_mtu(options, assignment)?;
        let (username, password) = (String::new(), String::new());
        return Ok((options, StreamAddress::Tcp { command: any, rewind: any, username, password }));
    }
    let Some(packets) = assignment.packets else {
        let options = with_mtu(options, assignment)?;
        return Ok((options, StreamAddress::SharedMemory { directory: assignment.directory.clone() }));
    };
    options.frame_length_max = FRAME_LENGTH_UDP;
    let network = network(packets)?;
    let way = StreamAddress::Datagrams {
        command: network.command,
        request: network.request,
        groups: network.groups.clone(),
        interface: packets.multicast.then(|| LOOPBACK.to_string()),
        rewind: None,
        username: String::new(),
        password: String::new(),
    };
    options.packets = Some(network);
    if packets.rewinds {
        options.tcp = Some(TcpNetwork::new(any, any));
    }
    Ok((with_mtu(options, assignment)?, way))
}

fn with_mtu(options: EventStreamOptions, assignment: &SequencerAssignment) -> Result<EventStreamOptions> {
    let Some(bytes) = assignment.mtu else { return Ok(options) };
    let mtu = Mtu::new(bytes.into()).map_err(failed)?;
    Ok(options.with_mtu(mtu))
}

fn network(packets: PacketOptions) -> Result<PacketNetwork> {
    let open = || UdpSocket::open(&UdpOptions::at(SocketAddr::new(LOOPBACK, 0)));
    let ports = || -> std::io::Result<_> {
        let (command, request) = (open()?, open()?);
        Ok((command.local_address(), request.local_address()))
    };
    let (command, request) = ports().map_err(|error| failed(error.to_string()))?;
    let mut network = PacketNetwork::udp(command, request);
    network.carrier =
        Carrier::Udp { interface: Interface::Address(LOOPBACK), hops: 0, segmentation: Segmentation::Auto };
    network.batch = packets.batch;
    if packets.multicast {
        // Another benchmark at the same time has another process id, so another group and port.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        network.groups = vec![SocketAddr::new(Ipv4Addr::new(239, 255, high, low).into(), command.port())];
    }
    Ok(network)
}
