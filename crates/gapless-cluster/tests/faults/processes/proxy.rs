//! Holds, delays or throttles TCP bytes. Held bytes are not lost: as after a partition, they arrive if the receiver
//! still waits for them.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const QUEUE_BYTES_MAX: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Default)]
pub struct ProxyDirection {
    is_held: AtomicBool,
    delay_ms: AtomicU64,
    /// 0 for any number.
    bytes_per_ms: AtomicU64,
}

impl ProxyDirection {
    pub fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::SeqCst);
    }

    pub fn delay(&self, delay_ms: u64) {
        self.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    pub fn throttle(&self, bytes_per_ms: u64) {
        self.bytes_per_ms.store(bytes_per_ms, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct ProxyState {
    forward: ProxyDirection,
    back: ProxyDirection,
    generation: AtomicU64,
    is_over: AtomicBool,
}

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<ProxyState>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub fn to(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((to.ip(), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::<ProxyState>::default();
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || accept(&listener, to, &seen));
        Self { address, shared, thread: Some(thread) }
    }

    pub fn way(&self, is_forward: bool) -> &ProxyDirection {
        if is_forward { &self.shared.forward } else { &self.shared.back }
    }

    pub fn reset(&self) {
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.reset();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn accept(listener: &TcpListener, address: SocketAddr, shared: &Arc<ProxyState>) {
    let mut pumps = Vec::new();
    while !shared.is_over.load(Ordering::SeqCst) {
        pumps.retain(|pump: &JoinHandle<()>| !pump.is_finished());
        let Ok((from, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let Ok(to) = TcpStream::connect(address) else { continue };
        for stream in [&from, &to] {
            stream.set_nonblocking(true).unwrap();
            stream.set_nodelay(true).unwrap();
        }
        let shared = Arc::clone(shared);
        pumps.push(std::thread::spawn(move || pump(from, to, &shared)));
    }
    pumps.into_iter().for_each(|pump| pump.join().unwrap());
}

struct ProxyQueue {
    pieces: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    is_at_end: bool,
    allowed: f64,
    looked: Instant,
}

impl ProxyQueue {
    fn new() -> Self {
        Self { pieces: VecDeque::new(), bytes: 0, is_at_end: false, allowed: 0.0, looked: Instant::now() }
    }

    /// Returns whether bytes moved; an error at the end of the connection.
    fn turn(&mut self, from: &mut TcpStream, to: &mut TcpStream, way: &ProxyDirection) -> std::io::Result<bool> {
        let now = Instant::now();
        let mut is_busy = false;
        let mut buffer = [0; 64 << 10];
        if !self.is_at_end && self.bytes < QUEUE_BYTES_MAX {
            match from.read(&mut buffer) {
                Ok(0) => self.is_at_end = true,
                Ok(length) => {
                    let due = now + Duration::from_millis(way.delay_ms.load(Ordering::SeqCst));
                    self.pieces.push_back((due, buffer[..length].to_vec()));
                    self.bytes += length;
                    is_busy = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        let rate = way.bytes_per_ms.load(Ordering::SeqCst);
        let elapsed_ms = (now - std::mem::replace(&mut self.looked, now)).as_secs_f64() * 1000.0;
        self.allowed = (self.allowed + elapsed_ms * rate as f64).min(rate as f64 * 10.0);
        if way.is_held.load(Ordering::SeqCst) {
            return Ok(is_busy);
        }
        while let Some((due, piece)) = self.pieces.front_mut() {
            let length = if rate == 0 { piece.len() } else { piece.len().min(self.allowed as usize) };
            if *due > now || length == 0 {
                break;
            }
            match to.write(&piece[..length]) {
                Ok(written) => {
                    piece.drain(..written);
                    self.bytes -= written;
                    self.allowed -= written as f64;
                    is_busy = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        if self.is_at_end && self.pieces.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(is_busy)
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, shared: &ProxyState) {
    let generation = shared.generation.load(Ordering::SeqCst);
    let (mut forward, mut back) = (ProxyQueue::new(), ProxyQueue::new());
    while shared.generation.load(Ordering::SeqCst) == generation {
        let moved = forward
            .turn(&mut from, &mut to, &shared.forward)
            .and_then(|moved| Ok(back.turn(&mut to, &mut from, &shared.back)? || moved));
        match moved {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(Duration::from_micros(200)),
            Err(_) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
