use super::PART;
use super::namespaces::LEFT;
use gapless_client::StreamConfig;
use gapless_client::node::{Message, NodeEvent, NodeState, StreamNode};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::process::Process;
use gapless_wire::Encoding;
use std::io::Read;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WORD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const LAST: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
const NODES: usize = 2;
const WINDOW: usize = 200;
/// Few enough a second that a node catches up soon after a cut.
const RATE: f64 = 500.0;
const LENGTHS: [usize; 4] = [8, 100, 500, 2_000];

pub struct TestProcess {
    name: String,
    process: Process,
    input: Option<ChildStdin>,
    last: String,
}

impl TestProcess {
    pub fn start(name: &str, mut command: Command, transport: &str, directory: &Path) -> Self {
        let command = command.args([PART, name, transport]).arg(directory).stdin(Stdio::piped());
        let mut process = Process::start(command);
        let input = Some(process.input());
        Self { name: name.to_owned(), process, input, last: String::new() }
    }

    pub fn line(&mut self) -> &str {
        match self.process.next_line() {
            Some(line) => self.last = line,
            None => panic!("{} has ended: {}, after {:?}", self.name, self.process.wait(), self.last),
        }
        &self.last
    }

    pub fn count(&self) -> u64 {
        self.last.parse().unwrap_or_default()
    }

    pub fn let_go(&mut self) {
        self.input = None;
    }

    pub fn end(&mut self) -> String {
        let last = self.process.rest().pop().unwrap_or_else(|| std::mem::take(&mut self.last));
        let status = self.process.wait_end(&self.name);
        assert!(status.success(), "{} has failed", self.name);
        last
    }
}

fn config(transport: &str, directory: &Path) -> StreamConfig {
    let directory = directory.join("stream");
    let second = if transport == "tcp" { "rewind" } else { "request" };
    let text = format!(
        "[stream]\ndirectory = {directory:?}\ntransport = \"{transport}\"\nwindow = \"8 MiB\"\n\
         message_length_max = \"1 MiB\"\n[journal]\nsegment_length = \"4 MiB\"\n[network]\ncommand = \"{LEFT}:4001\"\n\
         {second} = \"{LEFT}:4002\"\nheartbeat_interval = \"100 ms\"\nsilence = \"2 s\"\n"
    );
    StreamConfig::parse(&text, "stream.toml").unwrap()
}

pub fn play(name: &str, transport: &str, directory: &Path) {
    let config = config(transport, directory);
    let is_let_go = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&is_let_go);
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    match name {
        "sequencer" => sequence(&config, &is_let_go),
        // Lines of the near node would fill the pipe: only its last one is read.
        _ => publish_and_read(&config, &is_let_go, name == "node-far"),
    }
}

fn sequence(config: &StreamConfig, is_let_go: &AtomicBool) {
    let stream = EventStream::start(&EventStreamOptions::from_config(config).unwrap()).unwrap();
    println!("running");
    while !is_let_go.load(Ordering::Relaxed) {
        if let Some(failure) = stream.failure() {
            panic!("{failure}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{}", stream.stop().unwrap());
}

#[derive(Default)]
struct ReadTotals {
    messages: u64,
    own: u64,
    last_sequence: u64,
    lasts: usize,
    losses: u64,
    checksum: u64,
}

impl ReadTotals {
    fn take(&mut self, message: &Message<'_>) {
        let payload = message.payload;
        let number = u64::from_le_bytes(payload[..8].try_into().unwrap());
        if message.own {
            assert_eq!(number, self.own, "its own come back once, in order");
            self.own += 1;
        }
        if message.schema == LAST.schema {
            self.lasts += 1;
        } else {
            assert_eq!(payload.len(), LENGTHS[number as usize % LENGTHS.len()]);
            assert!(payload[8..].iter().all(|byte| *byte == number as u8), "its bytes are its own");
        }
        assert!(message.sequence > self.last_sequence, "sequences rise");
        (self.messages, self.last_sequence) = (self.messages + 1, message.sequence);
        let length = payload.len() as u64;
        for part in [message.sequence, message.session, message.session_seq, length, message.payload_crc.into()] {
            self.checksum = (self.checksum ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
        }
    }
}

fn publish_and_read(config: &StreamConfig, is_let_go: &AtomicBool, prints_progress: bool) {
    let mut node = StreamNode::new(config.link().unwrap(), config.node_options(None));
    let (mut met, mut sent, mut is_over) = (ReadTotals::default(), 0u64, false);
    let begun = Instant::now();
    let mut told = begun;
    while !(is_over && met.lasts == NODES && node.in_flight() == 0) {
        let due = (begun.elapsed().as_secs_f64() * RATE) as u64;
        while !is_over && node.can_publish() && node.in_flight() < WINDOW && sent <= due {
            is_over = is_let_go.load(Ordering::Relaxed);
            let length = if is_over { 8 } else { LENGTHS[sent as usize % LENGTHS.len()] };
            let mut payload = vec![sent as u8; length];
            payload[..8].copy_from_slice(&sent.to_le_bytes());
            node.publish(if is_over { LAST } else { WORD }, &payload).unwrap();
            sent += 1;
        }
        let count = node.poll(256, |event| match event {
            NodeEvent::Message(message) => met.take(&message),
            NodeEvent::State(NodeState::Connecting) => met.losses += 1,
            _ => {}
        });
        if count.unwrap() == 0 {
            node.wait(Duration::from_millis(1)).unwrap();
        }
        if prints_progress && told.elapsed() > Duration::from_millis(5) {
            told = Instant::now();
            println!("{}", met.own);
        }
    }
    assert_eq!(met.own, sent, "all of its own");
    println!("{} {} {:016x} {}", met.messages, met.last_sequence, met.checksum, met.losses);
}
