//! Free ports of this machine, for the processes of a benchmark.

use crate::{BenchError, Result};
use std::net::{IpAddr, TcpListener};

pub(crate) fn free_ports(address: IpAddr, count: usize) -> Result<Vec<u16>> {
    // Held together, so that they differ.
    let listeners: std::io::Result<Vec<_>> = (0..count).map(|_| TcpListener::bind((address, 0))).collect();
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    let ports = listeners.and_then(|listeners| listeners.iter().map(port).collect());
    ports.map_err(|source| BenchError::system("find a free port", source))
}
